"""Embedding models with every method, and our loop against `SentenceTransformerTrainer`: writes the table in docs/models-and-tasks.md.

    python benchmarks/embedding_methods.py --runs DIR [--model FOLDER --data FOLDER] [--out docs]

Without `--model`: the bundled encoder on demo/sts and demo/search. With it: that folder of sentence-transformers on STS-B and on pairs
(question, context) of SQuAD, below `--data`. A record in `--runs` is not measured again; `--out` writes what is there.

Isotropy and uniformity are those of the first texts, after the method. Alignment: of pairs with a score above 4, of a search of all pairs.
Noise floor: 99 % of the cosines of texts of different rows lie below.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from _report import Table, machine, options, publish
from embedding import library_trained
from sentence_transformers.sentence_transformer.losses import CoSENTLoss, MultipleNegativesRankingLoss
from transformers.utils import logging

from isoviz import methods, metrics, tasks
from isoviz.config import RunConfig
from isoviz.events import Finished
from isoviz.formatting import decimals
from isoviz.runs import planning
from isoviz.statistics import intervals, paired_bootstrap, two_samples
from isoviz.statistics.paired_bootstrap import Correlation, Mean, Ranks
from isoviz.tasks.protocol import OwnTask
from isoviz.training import loop
from isoviz.training.heads import ranking
from isoviz.training.reload import reload

SLUGS = [slug for slug, method in methods.catalogue().items() if "embedding" in method.kinds]
ARMS = [arm for slug in SLUGS for arm in (["istar −1", "istar +1"] if slug == "istar" else [slug])]
REAL_ARMS = ["baseline", "gor", "sigreg", "vicreg", "uniformity", "isobn"]
LIBRARY = "sentence-transformers"
COLUMNS = ("score", "IsoScore", "alignment", "uniformity", "noise floor")
DEMO = {"demo/sts": {"max_train": 1000, "epochs": 2}, "demo/search": {"max_train": 800, "epochs": 2}}
REAL = {
    "stsb": {"max_train": 640, "max_eval": 500, "max_length": 64},
    "squad": {"max_train": 4_000, "max_eval": 300, "max_length": 128},
}
SQUAD = OwnTask(text="question", second="context", kind="embedding")
HEADING = """\
### What methods do to embedding models

Means over seeds, in brackets the change from the baseline, each ± its 95 % interval (Student's t, paired by seed); \\* is a change after
Holm's correction over the methods of the column. A star means that a change is not chance, not that it is
large; few seeds show large or steady changes only. Strengths are the defaults, of I-STAR both
signs. Lower alignment, uniformity and noise floor: closer pairs, more even directions, lower cosines of unrelated
texts. `benchmarks/embedding_methods.py` measures and writes this."""
NAMES = {"demo/sts": "demo/sts, bundled encoder, Spearman", "demo/search": "demo/search, bundled encoder, nDCG@10"}
NAMES |= {"stsb": "STS-B, all-MiniLM-L6-v2, Spearman", "squad": "SQuAD, all-MiniLM-L6-v2, nDCG@10"}


def main() -> int:
    """Train what is missing, then write the tables of what is there."""
    parser = options(__doc__, out="models-and-tasks.md")
    parser.add_argument("--runs", type=Path, required=True, help="where records are kept")
    parser.add_argument("--model", help="a folder of sentence-transformers")
    parser.add_argument("--data", type=Path, help="with folders stsb and squad of Parquet files")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--tasks", nargs="+", help="only these")
    chosen = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    declared, arms = (REAL, [LIBRARY, *REAL_ARMS]) if chosen.model else (DEMO, ARMS)
    for seed, task, arm in itertools.product(range(chosen.seeds), chosen.tasks or declared, arms):
        file = chosen.runs / f"{task.replace('/', '-')}_{arm}_{seed}.json"
        if file.exists():
            continue
        began = time.perf_counter()
        config = configured(task, arm, seed, chosen)
        record = measured(config, by_library if arm == LIBRARY else by_us)
        chosen.runs.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(record))
        print(f"{time.perf_counter() - began:4.0f} s  {file.stem}  {record['score']:.4f}", flush=True)
    write(chosen)
    return 0


def configured(task: str, arm: str, seed: int, chosen: argparse.Namespace) -> RunConfig:
    slug, _, lam = arm.partition(" ")
    method = ("baseline" if arm == LIBRARY else slug, {"lam": float(lam.replace("−", "-"))} if lam else {})
    values: dict[str, Any] = {"threads": 1, "precision": "no", **({**DEMO, **REAL})[task]}
    if task in REAL:
        values |= {"data": str(chosen.data / task), "epochs": 1, "learning_rate": 2e-5}
    values |= {"own": SQUAD} if task == "squad" else {}
    slug = "own" if task == "squad" else task
    return planning.expand([chosen.model or "demo/tiny-bert"], [slug], [method], [seed], **values)[0]


def by_us(config: RunConfig, texts: list[str], folder: Path) -> np.ndarray:
    """(n, h) the texts' vectors after the method, from our loop's last epoch."""
    ended: list[Finished] = []
    briefly = config.model_copy(update={"max_eval": 32})  # between epochs; all rows are measured below
    loop.train(briefly, lambda e: ended.extend([e] if isinstance(e, Finished) else []), lambda: False, folder)
    assert ended[0].weights is not None
    model, head = reload(config, folder / ended[0].weights.path)
    parts = []
    with torch.inference_mode():
        for start in range(0, len(texts), 64):
            limits = {"padding": True, "truncation": True, "max_length": config.max_length}
            batch = head.tokenizer(texts[start : start + 64], return_tensors="pt", **limits)
            parts.append(model(**batch).head.numpy())
    return np.concatenate(parts)


def by_library(config: RunConfig, texts: list[str], folder: Path) -> np.ndarray:
    """The same of `SentenceTransformerTrainer`."""
    task = tasks.get(config.task, config.own)
    rows = tasks.load(task, config.data, None, config.max_train, 2).train
    rows = rows[[*task.columns, *([task.label] if task.label else [])]]
    loss = CoSENTLoss if task.label else MultipleNegativesRankingLoss
    return np.asarray(library_trained(config, rows, loss).encode(texts, show_progress_bar=False))


def measured(config: RunConfig, vectors: Callable[[RunConfig, list[str], Path], np.ndarray]) -> dict[str, Any]:
    """A run's record; `units` are its answers, one per row: cosines with their scores, or nDCG@10."""
    task = tasks.get(config.task, config.own)
    rows = tasks.load(task, config.data, None, config.max_train, config.max_eval)
    frame = rows.validation
    codes, texts = pd.factorize(frame[list(task.columns)].to_numpy().ravel())
    with tempfile.TemporaryDirectory() as folder:
        of_text = vectors(config, list(texts), Path(folder))
    codes = codes.reshape(len(frame), -1)
    unit = of_text / np.linalg.norm(of_text, axis=1, keepdims=True)
    cosines = unit[codes[:, 0]] @ unit[codes[:, 1]].T
    related = np.zeros((len(texts), len(texts)), bool)
    related[codes[:, 0], codes[:, 1]] = True
    apart = ~related[codes[:, :1], codes[:, 1]] & (codes[:, :1] != codes[:, 1])
    if task.label:
        scores = frame["label"].to_numpy(float)
        units, together = cosines.diagonal(), scores > 4
        score = Correlation(Ranks(scores), units).value
    else:
        ranks, found = ranking(of_text[codes.ravel()], codes)
        units = [1 / np.log2(1 + rank) if rank <= 10 else 0.0 for rank in ranks]
        score, together = found["ndcg"], np.ones(len(frame), bool)
    first = of_text[codes[:, 0]].astype(float)
    values = (score, metrics.isoscore(first), metrics.alignment(first[together], of_text[codes[together, 1]]))
    floor = np.quantile(cosines[apart], 0.99)
    return {
        **dict(zip(COLUMNS, map(float, (*values, metrics.uniformity(first), floor)), strict=True)),
        "units": [*map(float, units)],
        "scores": scores.tolist() if task.label else None,
        "rows": [len(rows.train), len(frame)],
    }


def write(chosen: argparse.Namespace) -> None:
    """The tables and what they show, of the seeds that all methods of a task have finished."""
    parts: list[Table | str] = [HEADING]
    for task, title in NAMES.items():
        runs_of = {arm: records(chosen.runs, task, arm) for arm in (*(ARMS if task in DEMO else REAL_ARMS), LIBRARY)}
        arms = [arm for arm in runs_of if runs_of[arm] and arm != LIBRARY]
        seeds = sorted(set.intersection(*[set(runs_of[arm]) for arm in arms])) if arms else []
        if len(seeds) < 2:
            continue
        train, validation, *_ = runs_of[arms[0]][seeds[0]]["rows"]
        if len(arms) == 1:  # the comparison of trainers alone
            parts.append(f"**{title}**, {train:,} training and {validation:,} validation rows. {quality(runs_of)}")
            continue
        about = f"{title}: {train:,} training rows, {validation:,} validation rows, {len(seeds)} seeds"
        table, shown = Table(about, ["", *COLUMNS], [[label(arm)] for arm in arms]), [f"**{title}.**"]
        for column in COLUMNS:
            values = np.array([[runs_of[arm][seed][column] for seed in seeds] for arm in arms])
            changes = values[1:] - values[0]
            p = two_samples.holm(two_samples.paired_t(changes))
            table.rows[0].append(f"{decimals(float(values[0].mean()), 4)}{half(values[0])}")
            for row, mean, change, one in zip(table.rows[1:], values[1:].mean(axis=1), changes, p, strict=True):
                star = "*" if one < 0.05 else ""
                row.append(
                    f"{decimals(float(mean), 4)} ({decimals(float(change.mean()), 4, sign=True)}{half(change)}){star}"
                )
            if column in COLUMNS[:2]:
                words = ("higher", "lower") if column == "score" else ("more isotropic", "less isotropic")
                clear, up = p < 0.05, changes.mean(axis=1) > 0
                groups = dict(zip((*words, "cannot tell"), (clear & up, clear & ~up, ~clear), strict=True))
                named = {word: ", ".join(itertools.compress(arms[1:], which)) for word, which in groups.items()}
                words_of = [f"{word}: {which}" for word, which in named.items() if which]
                shown.append(f"{column[0].upper() + column[1:]}: {'; '.join(words_of)}.")
        parts += [" ".join([*shown, *([quality(runs_of)] if task in REAL else [])]), table]
    where = machine(["torch", "transformers", "sentence-transformers"], "one thread")
    publish(chosen.out, "embedding-methods", *parts, where, page="models-and-tasks.md")


def records(folder: Path, task: str, arm: str) -> dict[int, dict[str, Any]]:
    """Seed → record."""
    files = folder.glob(f"{task.replace('/', '-')}_{arm}_?.json")
    return {int(file.stem[-1]): json.loads(file.read_text()) for file in files}


def label(arm: str) -> str:
    slug, _, lam = arm.partition(" ")
    strength = lam or methods.check_params(slug, {}).get("lam")
    return methods.get(slug).title + (f", λ = {strength}" if strength is not None else "")


def half(values: np.ndarray) -> str:
    ends = intervals.of_mean(values.tolist())
    return f" ± {(ends.high - ends.low) / 2:.4f}" if ends else ""


def quality(runs_of: Mapping[str, Mapping[int, dict[str, Any]]]) -> str:
    """Our baseline against the library's on the same rows."""
    both = [(ours, runs_of[LIBRARY][seed]) for seed, ours in runs_of["baseline"].items() if seed in runs_of[LIBRARY]]
    if not both:
        return "Not yet compared with `SentenceTransformerTrainer`."
    ours, theirs = (np.mean([pair[side]["units"] for pair in both], axis=0) for side in (0, 1))
    scores = both[0][0]["scores"]
    statistic = (lambda units: Correlation(Ranks(scores), units)) if scores else Mean
    found = paired_bootstrap.difference(statistic(theirs), statistic(ours))
    return (
        f"`SentenceTransformerTrainer` with the same rows, loss, batch, lengths, rates and epochs ({len(both)} seeds): our score is "
        f"{decimals(found.value, 4, sign=True)} from its ({decimals(found.low, 4, sign=True)} to {decimals(found.high, 4, sign=True)}, "
        "paired bootstrap over rows, of each row's mean answer)."
    )


if __name__ == "__main__":
    raise SystemExit(main())
