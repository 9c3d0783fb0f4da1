"""Every method on real tasks with a real encoder from a local directory: the tables of a release's closing note.

    python benchmarks/real_encoder.py --model DIR --data DIR --store DIR [--tasks glue/cola glue/mrpc] [--seeds 0 1 2]
        [--methods SLUG ...] [--rows 2000 | --rows glue/cola=2000 glue/mrpc=1000] [--epochs 3] [--lr 1e-4]
    python benchmarks/real_encoder.py --store DIR --tables-only

The data's `DIR` holds one folder per task (`cola`, `mrpc`), each with train and validation files. Needs no network. Runs are
kept in the store, which should hold nothing else: an interrupted table is continued. Finished and diverged runs are not
repeated; stopped and failed ones resume from their last checkpoint.

Prints Markdown: one line per run, means over seeds, and the papers' claims checked on these runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _claims import Line, claims_table, means_table, runs_table

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import IsoVizError
from isoviz.events import RESUMABLE, Finished
from isoviz.metrics.record import Measurement
from isoviz.runs import planning
from isoviz.runs.execution import execute
from isoviz.runs.store import RunRow, Store

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("baseline", {}),
    ("isolayer", {}),
    ("istar", {"lam": -1.0}),
    ("istar", {"lam": 1.0}),
    ("isobn", {}),
    ("batchnorm", {}),
    ("cosreg", {}),
    ("spectrum_pol", {}),
    ("spectrum_exp", {}),
    ("flow", {}),
]
SHOWN = frozenset({"finished", "diverged"})


def main() -> int:
    """Run what is missing in the store, then print the tables; returns 1 if a run failed."""
    chosen = options()
    store = Store(chosen.store)
    if chosen.tables_only:
        rows = [row for row in store.list(status=SHOWN, order="oldest") if row.config.task in chosen.tasks]
        rows = [row for row in rows if row.config.method in chosen.methods]
        failed = 0
    else:
        try:
            configs = plan(chosen)
        except IsoVizError as error:
            raise SystemExit(f"real_encoder: {error}") from None
        rows = [run(store, config) for config in configs]
        failed = sum(row.status not in SHOWN for row in rows)
    one_setting_per_task(rows)
    lines = [line(row) for row in ordered(rows)]
    for table in (runs_table(lines), means_table(lines), claims_table(lines)):
        print(f"\n{table.markdown()}")
    return 1 if failed else 0


def options() -> argparse.Namespace:
    every = list(dict.fromkeys([*(slug for slug, _ in VARIANTS), *methods.catalogue()]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="directory of the encoder")
    parser.add_argument("--data", type=Path, help="folder with one folder per task")
    parser.add_argument("--tasks", nargs="+", default=["glue/cola", "glue/mrpc"])
    parser.add_argument("--methods", nargs="+", choices=every, default=every, metavar="SLUG")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", default=["2000"], metavar="[TASK=]N", help="training rows")
    parser.add_argument("--eval-rows", nargs="+", default=[], metavar="[TASK=]N", help="validation rows; default: all")
    parser.add_argument("--epochs", nargs="+", default=["3"], metavar="[TASK=]N")
    parser.add_argument("--layer-rows", type=int, metavar="N", help="rows per step of IsoLayer's second stage")
    parser.add_argument("--layer-epochs", type=int, metavar="N", help="epochs of IsoLayer's second stage, at most")
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--store", help="folder or URL; one of its own")
    parser.add_argument("--tables-only", action="store_true", help="run nothing, print what the store holds")
    chosen = parser.parse_args()
    if chosen.tables_only and chosen.store is None:
        parser.error("--tables-only: needs --store")
    if not chosen.tables_only and (chosen.model is None or chosen.data is None):
        parser.error("nothing to measure: give --model DIR and --data DIR, or --store DIR --tables-only")
    return chosen


def plan(chosen: argparse.Namespace) -> list[RunConfig]:
    """All runs, seed by seed, so that an interrupted table has complete comparisons."""
    rows, epochs, eval_rows = (
        per_task(values, chosen.tasks) for values in (chosen.rows, chosen.epochs, chosen.eval_rows)
    )
    layer = {"layer_batch": chosen.layer_rows, "layer_epochs": chosen.layer_epochs}
    layer = {name: value for name, value in layer.items() if value is not None}
    known = {slug for slug, _ in VARIANTS}
    variants = VARIANTS + [(slug, {}) for slug in methods.catalogue() if slug not in known]
    variants_ = [(slug, {**params, **(layer if slug == "isolayer" else {})}) for slug, params in variants]
    variants_ = [(slug, params) for slug, params in variants_ if slug in chosen.methods]
    return [
        config
        for task in chosen.tasks
        for config in planning.expand(
            [chosen.model],
            [task],
            variants_,
            chosen.seeds,
            data=str(chosen.data / task.split("/")[-1]),
            max_train=rows.get(task),
            max_eval=eval_rows.get(task),
            epochs=epochs[task],
            learning_rate=chosen.lr,
            threads=chosen.threads,
        )
    ]


def per_task(values: Sequence[str], named: Sequence[str]) -> dict[str, int]:
    """`2000` is for all tasks, `glue/cola=2000` for one and comes before it."""
    try:
        common = {task: int(text) for text in values if "=" not in text for task in named}
        specific = {task: int(number) for task, _, number in (text.partition("=") for text in values if "=" in text)}
    except ValueError:
        raise SystemExit(f"real_encoder: expected N or TASK=N (got {' '.join(values)})") from None
    if values and (missing := [task for task in named if task not in common | specific]):
        raise SystemExit(f"real_encoder: no number for {', '.join(missing)} (got {' '.join(values)})")
    return common | specific


def run(store: Store, config: RunConfig) -> RunRow:
    """The run of that configuration: from the store if it has ended there, else resumed or started."""
    same = [row for row in store.list() if row.config == config]
    done = [row for row in same if row.status in SHOWN]
    resumable = [row for row in same if row.status in RESUMABLE]
    if done:
        row = done[0]
    elif resumable:
        store.requeue(resumable[0].id, claim="benchmark")
        row = execute(store, resumable[0].id)
    else:
        row = execute(store, store.create([config], claim="benchmark")[0])
    why = f": {row.error.get('message', '')}" if row.error else ""
    print(f"{config.task} {name_of(config)} seed {config.seed}: {row.status}{why}", file=sys.stderr, flush=True)
    return row


def one_setting_per_task(rows: Iterable[RunRow]) -> None:
    """Refuse to compare runs of one task that differ in more than method, parameters and seed."""
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        setting = row.config.model_dump(exclude={"method", "params", "seed"})
        known = first.setdefault(row.config.task, setting)
        if differing := [name for name in setting if setting[name] != known[name]]:
            raise SystemExit(f"real_encoder: runs of {row.config.task} in this store differ in {', '.join(differing)}")


def ordered(rows: Iterable[RunRow]) -> list[RunRow]:
    """By task, then method in the order of the variants, then seed."""
    names = [slug for slug, _ in VARIANTS]

    def place(row: RunRow) -> tuple[Any, ...]:
        config = row.config
        known = names.index(config.method) if config.method in names else len(names)
        return (config.task, known, name_of(config), config.seed)

    return sorted(rows, key=place)


def name_of(config: RunConfig) -> str:
    """The variant: its method, I-STAR's λ, and non-default parameters."""
    default = methods.get(config.method).Params().model_dump()
    changed = {name: value for name, value in config.params.items() if value != default[name]}
    if config.method == "istar":
        changed["lam"] = config.params["lam"]
    return " ".join([config.method, *(f"{n}={v:+g}" if n == "lam" else f"{n}={v}" for n, v in sorted(changed.items()))])


def line(row: RunRow) -> Line:
    """One run as the tables want it."""
    config, result = row.config, row.result or Finished(metrics={}, isotropy=Measurement(), timing={})
    isotropy = result.isotropy
    pooled = isotropy.clouds.get("pooled")
    tokens = isotropy.clouds.get("layers")
    primary = tasks.get(config.task).primary
    return Line(
        task=config.task,
        method=name_of(config),
        slug=config.method,
        seed=config.seed,
        status=row.status,
        lam=config.params.get("lam"),  # type: ignore[arg-type]
        metric_name=primary,
        metric=result.metrics.get(primary),
        isoscore=isotropy.number("isoscore"),
        unbiased=isotropy.number("isoscore_unbiased"),
        isoscore_star=isotropy.number("isoscore_star"),
        ev=isotropy.curve("ev"),
        pooled=pooled.number("isoscore") if pooled else None,
        pooled_ev=pooled.curve("ev") if pooled else (),
        tokens=tokens.number("isoscore") if tokens else None,
        tokens_cosine=tokens.number("mean_cosine") if tokens else None,
        i1=isotropy.number("i1"),
        i2=isotropy.number("i2"),
        norm=isotropy.output.norm if isotropy.output else None,
        twonn=isotropy.number("twonn"),
        cosine=isotropy.number("mean_cosine"),
        seconds=result.timing.get("train_seconds"),
    )


if __name__ == "__main__":
    raise SystemExit(main())
