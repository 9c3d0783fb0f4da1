"""Trains and packs the runs of docs/what-holds.md: every method on several tasks with five seeds, each run also scored on mistyped rows.

    python -m factory.record_what_holds train --store DIR                           # the bundled encoder on the demo tasks
    python -m factory.record_what_holds train --store DIR --model FOLDER --data FOLDER   # all-MiniLM-L6-v2 on SST-2, STS-B and MRPC
    python -m factory.record_what_holds pack --store DIR [DIR ...]

`train` continues its store after an interruption; `--until 02:00` begins no run after that time. `--data`
has a folder per task with train and validation as Parquet. `pack` writes docs/data/what-holds.zip: a store of the finished runs without
weights. Runs are serial, on one thread: on a quiet core about 7 seconds each for the demo tasks, 20 to 60 for MiniLM.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from factory import example_store, typos
from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.events import Event, Finished
from isoviz.home import DATABASE
from isoviz.runs import planning
from isoviz.runs.planning import MethodChoice
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store

PACKED: Final = Path(__file__).parents[1] / "docs/data/what-holds.zip"
SMALL, LARGE = "demo/tiny-bert", "all-MiniLM-L6-v2"
GROUPS: Final = MappingProxyType({SMALL: "What holds: bundled encoder", LARGE: "What holds: all-MiniLM-L6-v2"})
SEEDS: Final = (0, 1, 2, 3, 4)
SHIFT: Final = "typos"
"""Name of the shifted test set: a run's metrics have `accuracy_typos` beside `accuracy`."""
STRENGTHS: Final = MappingProxyType[str, Sequence[float]](
    {"istar": (-1.0, 1.0), "sigreg": (0.02,), "gor": (0.1,), "vicreg": (0.01,), "simcse": (0.1,)}
)
"""I-STAR with both signs. The others had these defaults then; they are a tenth now, because on demo/paraphrase the score fell."""
LATER: Final = ("uniformity", "visreg")
"""Methods that came after these runs."""
ARMS: Final[tuple[MethodChoice, ...]] = tuple(
    (slug, params)
    for slug in methods.catalogue()
    if slug not in LATER
    for params in ([{"lam": lam} for lam in STRENGTHS[slug]] if slug in STRENGTHS else [{}])
)
"""Every method at its default strength, or at those of `STRENGTHS`."""
DEMO_ROWS: Final = MappingProxyType(
    {
        "demo/acceptability": 1000,
        "demo/similarity": 1500,
        "demo/paraphrase": 2000,
        "demo/sentiment": 2000,
        "demo/sentiment5": 1500,
        "demo/entailment": 2000,
    }
)
"""Training rows."""
FIRST: Final = 3
"""So many tasks are done with all seeds before the others begin."""
REAL: Final = MappingProxyType({"glue/sst2": 1, "glue/stsb": 1, "glue/mrpc": 2})
"""Epochs. The third task was glue/cola, until seed 0 had shown that MiniLM predicts one class there within three epochs."""
DEMO_SETTINGS: Final = MappingProxyType[str, Any]({"epochs": 3, "max_length": 48, "max_eval": 500, "threads": 1})
REAL_SETTINGS: Final = MappingProxyType[str, Any](
    {
        "max_train": 960,
        "batch_size": 16,
        "learning_rate": 2e-4,
        "max_length": 64,
        "max_eval": 400,
        "threads": 1,
    }
)


def demo_runs() -> Iterator[RunConfig]:
    """The runs of the bundled encoder, in their order."""
    names = list(DEMO_ROWS)
    for seed, task in (*itertools.product(SEEDS, names[:FIRST]), *itertools.product(SEEDS, names[FIRST:])):
        yield from planning.expand([SMALL], [task], ARMS, [seed], max_train=DEMO_ROWS[task], **DEMO_SETTINGS)


def real_runs(model: str, data: Path) -> Iterator[RunConfig]:
    """The runs of a model in a folder on real tasks, in their order."""
    for seed, (task, epochs) in itertools.product(SEEDS, REAL.items()):
        folder = str(data / task.partition("/")[2])
        yield from planning.expand([model], [task], ARMS, [seed], data=folder, epochs=epochs, **REAL_SETTINGS)


def shifted_metrics(config: RunConfig, checkpoint: Path) -> dict[str, float | None]:
    """`METRIC_typos` → value: the trained model on its mistyped validation rows."""
    from accelerate import Accelerator

    from isoviz.training.evaluation import EncodedSplits, Evaluator
    from isoviz.training.reload import reload

    model, head = reload(config, checkpoint)
    data = tasks.load(head.task, config.data, None, 2, config.max_eval)
    shifted = typos.mistyped_rows(data.validation, head.task.columns)
    rows = EncodedSplits(replace(data, extra={SHIFT: shifted}), head, config)
    return Evaluator(model, head, rows, Accelerator(cpu=True, mixed_precision="no"), lambda: None).extra_metrics()


def train(
    config: RunConfig,
    emit: Callable[[Event], None],
    should_stop: Callable[[], bool],
    run_dir: Path,
    resume: bool = False,
) -> None:
    """As `isoviz.training.loop.train`; the result has the shifted metrics too, and no weights are kept."""
    from isoviz.training import loop

    def completed(event: Event) -> None:
        if isinstance(event, Finished):
            assert event.weights is not None
            checkpoint = run_dir / event.weights.path
            metrics = event.metrics | shifted_metrics(config, checkpoint)
            shutil.rmtree(checkpoint.parent)
            event = event.model_copy(update={"metrics": metrics, "weights": None})
        emit(event)

    loop.train(config, completed, should_stop, run_dir, resume)


def train_all(folder: Path, runs: Iterator[RunConfig], group: str, until: str) -> None:
    """Train the runs that the store lacks, one at a time, so that an interruption leaves no queue."""
    from transformers.utils import logging

    from isoviz.runs.execution import execute

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    store = Store(folder)
    ended = {row.config.identity for row in store.list(group=group) if row.status in ("finished", "diverged")}
    for config in runs:
        if config.identity in ended:
            continue
        if until and time.strftime("%H:%M") >= until:
            return
        (run_id,) = store.create([config], group=group, claim="factory.record_what_holds")
        began = time.perf_counter()
        row = execute(store, run_id, train=train)
        scores = {
            name: value for name, value in (row.result.metrics if row.result else {}).items() if value is not None
        }
        primary = tasks.get(config.task).primary
        numbers = " ".join(f"{scores.get(name, float('nan')):.3f}" for name in (primary, f"{primary}_{SHIFT}"))
        words = f"{config.task} {config.method} seed {config.seed}: {row.status} {row.collapsed or ''} {numbers}"
        print(f"{time.perf_counter() - began:6.1f} s  {words}", flush=True)


def pack(folders: list[Path], target: Path = PACKED) -> int:
    """Write the stores' runs as one zipped store without weights and folders; returns its size in bytes.

    A seed of a task is packed once all arms have finished, so that comparisons are balanced.
    """
    rows = [
        (store, _without_folders(row))
        for store in map(Store, folders)
        for group in GROUPS.values()
        for row in store.list(group=group, status="finished", order="oldest")
    ]
    done = Counter((row.group, row.config.task, row.config.seed) for _, row in rows)
    complete = [(store, row) for store, row in rows if done[row.group, row.config.task, row.config.seed] == len(ARMS)]
    with tempfile.TemporaryDirectory() as temporary:
        file = Path(temporary) / DATABASE
        example_store.write_store(complete, file)
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            archive.write(file, DATABASE)
    print(f"{len(complete)} of {len(rows)} finished runs")
    return target.stat().st_size


def _without_folders(row: RunRow) -> RunRow:
    """The run under the name of its model: a record speaks of no folder."""
    name = next(model for model, group in GROUPS.items() if group == row.group)
    return replace(row, config=row.config.model_copy(update={"model": name, "data": None}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("train", "pack"))
    parser.add_argument("--store", metavar="DIR", type=Path, nargs="+", required=True, help="where the runs are, or go")
    parser.add_argument("--model", metavar="FOLDER", help="of all-MiniLM-L6-v2; the bundled encoder by default")
    parser.add_argument("--data", metavar="FOLDER", type=Path, help="with a folder per real task")
    parser.add_argument("--until", metavar="HH:MM", default="", help="begin no run at or after this time of today")
    chosen = parser.parse_args()
    if chosen.step == "pack":
        print(f"{PACKED}: {pack(chosen.store) / 1e6:.2f} MB")
        return 0
    if (chosen.model is None) != (chosen.data is None):
        parser.error("--model and --data: give both or neither")
    runs = real_runs(chosen.model, chosen.data) if chosen.model else demo_runs()
    train_all(chosen.store[0], runs, GROUPS[LARGE if chosen.model else SMALL], chosen.until)
    return 0


if __name__ == "__main__":
    sys.exit(main())
