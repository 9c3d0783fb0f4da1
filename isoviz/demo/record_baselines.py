"""Records what simple approaches and the bundled model reach on the demo tasks: `python -m
isoviz.demo.record_baselines`.

Every fine-tuning is an ordinary run of the engine, with the pretrained weights or with fresh random weights of the same
architecture, the same for everything else. Writes `data/baselines.json`.
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

from isoviz.demo import bundled_model_dir
from isoviz.demo.baselines import RECORD, bag_of_words, by_phenomenon, majority
from isoviz.demo.tasks import SLUGS, describe, generate
from isoviz.training.devices import share_cores

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
EPOCHS = {"demo/sentiment": 8, "demo/paraphrase": 3}  # by size of the task; acceptability takes the recipe's
SHORT: dict[str, Any] = {**RECIPE, "epochs": 5, "max_train": 1000, "max_length": 48}  # the "60-second demo" preset


def fine_tune(config: RunConfig, run_dir: Path) -> dict[str, Any]:
    """Runs the engine; returns the accuracy, the accuracy by phenomenon and the seconds in all."""
    from isoviz.training import train

    events: list[Any] = []
    began = time.perf_counter()
    train(config, events.append, lambda: False, run_dir)
    return {
        "accuracy": round(events[-1].metrics["accuracy"], 4),
        "by_phenomenon": _by_phenomenon(config, run_dir),
        "seconds": round(time.perf_counter() - began, 1),
    }


def _by_phenomenon(config: RunConfig, run_dir: Path) -> dict[str, float]:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    from isoviz.training import checkpoints

    folder = checkpoints.newest(run_dir)
    assert folder is not None
    model = AutoModelForSequenceClassification.from_pretrained(bundled_model_dir("demo/tiny-bert"), num_labels=2)
    weights = load_file(folder / "model.safetensors")
    model.load_state_dict(
        {name.removeprefix("network."): value for name, value in weights.items() if name.startswith("network.")}
    )
    tokenizer = AutoTokenizer.from_pretrained(bundled_model_dir("demo/tiny-bert"))
    rows = generate(config.task)["validation"]
    texts = [[row[column] for row in rows] for column in describe(config.task).columns[:-1]]
    model.eval()
    with torch.no_grad():
        guesses = model(**tokenizer(*texts, padding=True, return_tensors="pt")).logits.argmax(-1).tolist()
    return by_phenomenon(rows, [int(guess == row["label"]) for guess, row in zip(guesses, rows, strict=True)])


def random_model(seed: int, folder: Path) -> Path:
    """A directory with the bundled network as it was before its pretraining, with weights of another seed."""
    from transformers import AutoTokenizer

    from isoviz.demo.pretrain import before_training

    source = bundled_model_dir("demo/tiny-bert")
    before_training(source, seed).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def runs(slug: str, recipe: dict[str, Any], pretrained: bool) -> dict[str, Any]:
    """One run per seed; accuracies, their mean, mean accuracy by phenomenon, and the longest run's seconds."""
    from isoviz.config import RunConfig

    results = {}
    for seed in SEEDS:
        with tempfile.TemporaryDirectory() as folder:
            model = "demo/tiny-bert" if pretrained else str(random_model(seed, Path(folder) / "random"))
            config = RunConfig.checked(model=model, task=slug, seed=seed, **recipe)
            results[seed] = fine_tune(config, Path(folder) / "run")
        print(
            slug,
            "pretrained" if pretrained else "random",
            seed,
            results[seed]["accuracy"],
            results[seed]["seconds"],
            file=sys.stderr,
        )
    names = results[SEEDS[0]]["by_phenomenon"]
    return {
        "mean": round(sum(result["accuracy"] for result in results.values()) / len(SEEDS), 4),
        "seeds": {str(seed): result["accuracy"] for seed, result in results.items()},
        "by_phenomenon": {
            name: round(sum(result["by_phenomenon"][name] for result in results.values()) / len(SEEDS), 3)
            for name in names
        },
        "seconds": max(result["seconds"] for result in results.values()),
    }


def record() -> dict[str, Any]:
    import accelerate
    import torch
    import transformers

    tasks: dict[str, Any] = {}
    for slug in SLUGS:
        bag, bag_by = bag_of_words(slug)
        recipe = {**RECIPE, "epochs": EPOCHS.get(slug, RECIPE["epochs"])}
        tasks[slug] = {
            "metric": "accuracy",
            "majority": majority(slug),
            "bag_of_words": bag,
            "bag_of_words_by_phenomenon": bag_by,
            "random_weights": runs(slug, recipe, pretrained=False),
            "pretrained": runs(slug, recipe, pretrained=True),
            "recipe": recipe,
        }
    slug = "demo/acceptability"
    tasks[slug]["short"] = {
        "recipe": SHORT,
        "pretrained": runs(slug, SHORT, pretrained=True),
        "random_weights": runs(slug, SHORT, pretrained=False),
    }
    versions = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "accelerate": accelerate.__version__,
    }
    return {"versions": versions, "tasks": tasks}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m isoviz.demo.record_baselines", description=__doc__)
    parser.add_argument("--out", type=Path, default=RECORD, help="where to write (default: the package's own record)")
    out = parser.parse_args().out
    share_cores(os.environ)
    out.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
