"""Records the scores of simple approaches and the bundled model on the demo tasks: `python -m
factory.record_baselines`.

Every fine-tuning is an ordinary run of the engine, with the pretrained weights or with fresh random weights of the same
architecture, the same for everything else. Writes `isoviz/demo/baselines.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.baselines import bag_of_words, by_phenomenon, copied, majority, word_by_word
from factory.tasks import SLUGS, generate, generator
from isoviz import tasks
from isoviz.demo import RECORD, bundled_model_dir
from isoviz.jobs.processes import share_cores
from isoviz.runs.planning import PRESETS

if TYPE_CHECKING:
    from isoviz.config import RunConfig

SEEDS = (0, 1, 2)
RECIPE: dict[str, Any] = {
    "epochs": 4,
    "learning_rate": 6e-4,
    "batch_size": 32,
    "max_length": 64,
    "precision": "no",
    "threads": 2,
}
SPECIAL: dict[str, dict[str, Any]] = {  # tasks that need settings other than the recipe's
    "demo/sentiment": {"epochs": 8},
    "demo/sentiment5": {"epochs": 6},
    "demo/entailment": {"epochs": 8},
    "demo/paraphrase": {"epochs": 3},
    "demo/qa": {"epochs": 8, "max_length": 96},
    "demo/translation": {"epochs": 6, "learning_rate": 1e-3},
    "demo/summarization": {"epochs": 6, "learning_rate": 1e-3, "max_length": 128},
    "demo/search": {"epochs": 1, "learning_rate": 4e-4, "threads": 1},
}
_DEMO = next(preset.plan for preset in PRESETS if preset.slug == "demo")
SHORT: dict[str, Any] = {**RECIPE, **{name: _DEMO[name] for name in ("epochs", "max_train", "max_length")}}


def model_for(slug: str) -> str:
    """The bundled model that the task is for."""
    return "demo/tiny-bart" if tasks.get(slug).kind == "seq2seq" else "demo/tiny-bert"


def fine_tune(config: RunConfig, run_dir: Path) -> dict[str, Any]:
    """Runs the engine; returns all metrics, the score (the task's primary metric) and the seconds in all."""
    from isoviz.training.loop import train

    events: list[Any] = []
    began = time.perf_counter()
    train(config, events.append, lambda: False, run_dir)
    metrics = {name: value if value is None else round(value, 4) for name, value in events[-1].metrics.items()}
    return {
        "score": metrics[tasks.get(config.task).primary],
        "metrics": metrics,
        "seconds": round(time.perf_counter() - began, 1),
        "by_phenomenon": _by_phenomenon(config, run_dir) if tasks.get(config.task).kind == "classification" else {},
    }


def _by_phenomenon(config: RunConfig, run_dir: Path) -> dict[str, float | None]:
    """Accuracy by phenomenon of the saved predictions, which are in the order of the rows."""
    from isoviz.training import predictions

    saved = predictions.load(run_dir)
    assert saved is not None
    return by_phenomenon(config.task, generate(config.task)["validation"], saved.table["prediction"].tolist())


def random_model(slug: str, seed: int, folder: Path) -> Path:
    """A directory with a bundled network in its state before pretraining, with weights from another seed."""
    from transformers import AutoTokenizer

    from factory import pretrain_bart, pretrain_bert
    from factory.pretraining import before_training

    source = bundled_model_dir(slug)
    before_training(pretrain_bart if slug == "demo/tiny-bart" else pretrain_bert, source, seed).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def runs(slug: str, recipe: dict[str, Any], pretrained: bool) -> dict[str, Any]:
    """One run per seed; scores, their mean, mean accuracy by phenomenon (classes only), and the longest run's seconds."""
    from isoviz.config import RunConfig

    results = {}
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            name = model_for(slug)
            model = name if pretrained else str(random_model(name, seed, Path(folder) / "random"))
            config = RunConfig.checked(model=model, task=slug, seed=seed, **recipe)
            results[seed] = fine_tune(config, Path(folder) / "run")
        measured = (results[seed]["metrics"], results[seed]["seconds"])
        print(slug, "pretrained" if pretrained else "random", seed, *measured, file=sys.stderr)
    scores = {str(seed): result["score"] for seed, result in results.items()}
    known = [score for score in scores.values() if score is not None]
    return {
        # a metric that is undefined in a run (constant predictions have no correlation) is undefined in the mean
        "mean": round(sum(known) / len(SEEDS), 4) if len(known) == len(SEEDS) else None,
        "seeds": scores,
        "by_phenomenon": {
            name: round(sum(result["by_phenomenon"][name] for result in results.values()) / len(SEEDS), 3)
            for name in results[SEEDS[0]]["by_phenomenon"]
        },
        "seconds": max(result["seconds"] for result in results.values()),
    }


def record_task(slug: str) -> dict[str, Any]:
    """All that is recorded of one task."""
    bag, bag_by = bag_of_words(slug)
    recipe = {**RECIPE, **SPECIAL.get(slug, {})}
    simple = {"majority": majority(slug), "copied": copied(slug), "word_by_word": word_by_word(slug)}
    maker = generator(slug)
    values = {
        "metric": tasks.get(slug).primary,
        "rows": {"train": maker.train_rows, "validation": maker.validation_rows},
        **{name: value for name, value in simple.items() if value is not None},
        "bag_of_words": bag,
        "bag_of_words_by_phenomenon": bag_by,
        "random_weights": runs(slug, recipe, pretrained=False),
        "pretrained": runs(slug, recipe, pretrained=True),
        "model": model_for(slug),
        "recipe": recipe,
    }
    if slug == "demo/acceptability":
        values["short"] = {
            "recipe": SHORT,
            "pretrained": runs(slug, SHORT, pretrained=True),
            "random_weights": runs(slug, SHORT, pretrained=False),
        }
    return values


def record(slugs: list[str], out: Path) -> None:
    """Records the tasks in turn; writes `out` after each task and keeps its entries for other tasks."""
    import accelerate
    import torch
    import transformers

    known = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {"tasks": {}}
    versions = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "accelerate": accelerate.__version__,
    }
    for slug in slugs:
        known["tasks"][slug] = record_task(slug)
        ordered = {name: known["tasks"][name] for name in SLUGS if name in known["tasks"]}
        known = {"versions": versions, "tasks": ordered}
        out.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m factory.record_baselines", description=__doc__)
    parser.add_argument("--out", type=Path, default=RECORD, help="where to write (default: the package's own record)")
    parser.add_argument("--tasks", nargs="+", choices=SLUGS, default=list(SLUGS), help="which ones (default: all)")
    options = parser.parse_args()
    share_cores(os.environ)
    record(options.tasks, options.out)


if __name__ == "__main__":
    main()
