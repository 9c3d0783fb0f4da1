"""What SIGReg, GOR, VICReg and SimCSE do at their default strength: their own statistic and the task's score, seed by seed.

    python benchmarks/new_methods.py [--seeds 5] [--tasks demo/acceptability …] [--set sigreg.lam=0.1 …] [--quick] [--out docs]

Each run fine-tunes the bundled encoder with the settings of the recorded examples, on the rows of `factory/record_what_holds.py`, and is
compared with plain training of the same seed. demo/sentiment and demo/sentiment5 take ten epochs: in three, plain training learns
nothing that a penalty could spoil. A statistic is the method's term without its strength, on those vectors of the validation rows that
its penalty acts on; SIGReg's directions are those of the first batch for all models. The bar: the statistic is lower in every seed, and
the 95 % interval of the mean difference in the task's score contains 0.
"""

from __future__ import annotations

import argparse
import functools
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from _report import Table, finish, machine, options
from accelerate import Accelerator
from transformers.utils import logging

from factory.record_what_holds import DEMO_ROWS
from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.methods.protocol import CloudPenalty, Representations
from isoviz.runs import planning
from isoviz.statistics import intervals
from isoviz.training import processes, weights
from isoviz.training.evaluation import EncodedSplits, Evaluator
from isoviz.training.loop import train
from isoviz.training.reload import reload

METHODS = ("sigreg", "gor", "vicreg", "simcse")
TASKS = {task: (rows, 10 if task in ("demo/sentiment", "demo/sentiment5") else 3) for task, rows in DEMO_ROWS.items()}
"""Training rows and epochs."""
SETTINGS: dict[str, Any] = {"max_length": 48, "threads": 1}


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument(
        "--set", nargs="+", default=[], metavar="SLUG.NAME=VALUE", help="other parameters than the defaults"
    )
    parser.add_argument(
        "--quick", action="store_true", help="128 rows and one epoch, to try the script; no bar is judged"
    )
    parser.add_argument("--processes", type=int, default=2, help="tasks at a time")
    chosen = parser.parse_args()
    table = Table(
        f"At default strength, {chosen.seeds} seeds; each cell compares with plain training of the same seed",
        [
            "task, method",
            "statistic: plain",
            "with the method",
            "seeds lower",
            "score: plain",
            "with the method",
            "difference",
        ],
    )
    missed: list[str] = []
    with ProcessPoolExecutor(chosen.processes, mp_context=get_context("spawn")) as pool:
        for rows, reasons in pool.map(functools.partial(_rows, chosen), chosen.tasks):
            table.rows += rows
            missed += reasons
    about = "Bundled encoder, settings of the recorded examples; demo/sentiment and demo/sentiment5 with ten epochs. "
    about += machine(["torch", "transformers"], "1 thread")
    return finish(chosen, "new-methods", "## What the newer penalties do", about, missed, table)


def _rows(chosen: argparse.Namespace, task: str) -> tuple[list[list[str]], list[str]]:
    """The lines of a task, and which bars they miss."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    table, missed = Table("", []), []
    plain = [_trained(task, "baseline", {}, seed, chosen.quick) for seed in range(chosen.seeds)]
    for slug in chosen.methods:
        given = dict(_assignment(text) for text in chosen.set if text.startswith(f"{slug}."))
        with_it = [_trained(task, slug, given, seed, chosen.quick) for seed in range(chosen.seeds)]
        missed += _row(table, task, slug, methods.check_params(slug, given), plain, with_it)
        print(table.rows[-1], flush=True)
    return table.rows, missed


Trained = tuple[float, dict[str, np.ndarray]]
"""The primary metric, and the validation rows' clouds by name."""


def _trained(task: str, slug: str, params: Mapping[str, Any], seed: int, quick: bool) -> Trained:
    rows, epochs = (128, 1) if quick else TASKS[task]
    method = slug, dict(params)
    (config,) = planning.expand(["demo/tiny-bert"], [task], [method], [seed], max_train=rows, epochs=epochs, **SETTINGS)
    events: list[Any] = []
    with tempfile.TemporaryDirectory() as folder:
        train(config, events.append, lambda: False, Path(folder))
        return events[-1].metrics[tasks.get(task).primary], _vectors(config, Path(folder))


def _vectors(config: RunConfig, folder: Path) -> dict[str, np.ndarray]:
    """The clouds `pooled`, `cls` and `tokens` of the validation rows after training, in evaluation mode."""
    checkpoint = weights.newest(folder)
    assert checkpoint is not None
    model, head = reload(config, checkpoint)
    processes.begin()
    rows = EncodedSplits(tasks.load(head.task, config.data, None, 2, config.max_eval), head, config)
    evaluator = Evaluator(model, head, rows, Accelerator(cpu=True, mixed_precision="no"), lambda: None)
    clouds: dict[str, list[np.ndarray]] = {"pooled": [], "cls": [], "tokens": []}
    with torch.inference_mode():
        for _, batch in evaluator.batches(rows.part_of(rows.validation)):
            reps = model.represent(**batch)
            for name, points in (
                ("pooled", reps.pooled),
                ("cls", reps.cls),
                ("tokens", reps.tokens([model.num_layers])),
            ):
                clouds[name].append(points.numpy())
    return {name: np.concatenate(parts) for name, parts in clouds.items()}


def _statistic(slug: str, params: Mapping[str, Any], clouds: Mapping[str, np.ndarray]) -> float:
    """The method's term without its strength on a cloud; SimCSE's with both encodings equal, as in evaluation."""
    kind = methods.get(slug)
    method = kind(kind.Params(**{**params, "lam": 1.0}))
    points = torch.tensor(clouds[params.get("on", "pooled")])

    class Facts:
        width = head_width = points.shape[1]
        num_layers = 1000

        def modules(self) -> list[Any]:
            return []

    method.attach(Facts())  # type: ignore[arg-type]
    if isinstance(method, CloudPenalty):
        return float(method.statistic(points))
    reps = Representations(points, points, points, (), points, points)
    reps.again = lambda: reps
    return sum(float(term) for term in method.penalties(reps).values())


def _row(
    table: Table, task: str, slug: str, params: Mapping[str, Any], plain: list[Trained], with_it: list[Trained]
) -> list[str]:
    """Add a line; which bars it misses."""
    before, after = ([_statistic(slug, params, clouds) for _, clouds in runs] for runs in (plain, with_it))
    scores = [[score for score, _ in runs] for runs in (plain, with_it)]
    differences = [other - one for one, other in zip(*scores, strict=True)]
    interval = intervals.of_mean(differences)
    lower = sum(second < first for first, second in zip(before, after, strict=True))
    apart = "" if interval is None else f" [{interval.low:+.3f}, {interval.high:+.3f}]"
    table.rows.append(
        [
            f"{task}, {slug}",
            f"{np.mean(before):.4g}",
            f"{np.mean(after):.4g}",
            f"{lower} of {len(before)}",
            *(f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" for values in scores),
            f"{np.mean(differences):+.3f}{apart}",
        ]
    )
    missed = [] if lower == len(before) else [f"{slug} on {task}: lower in {lower} of {len(before)} seeds"]
    if interval is None or not interval.low <= 0 <= interval.high:
        missed.append(f"{slug} on {task}: the score changes by {np.mean(differences):+.3f}")
    return missed


def _assignment(text: str) -> tuple[str, str | float]:
    name, _, value = text.partition("=")
    try:
        return name.split(".", 1)[1], float(value)
    except ValueError:
        return name.split(".", 1)[1], value


if __name__ == "__main__":
    raise SystemExit(main())
