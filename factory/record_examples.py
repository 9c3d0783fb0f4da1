"""Records the bundled examples: `python -m factory.record_examples [--store DIR] [grids | studies | pack ...]`.

Seven steps, all but the last unless some are named:

- `grids` trains the runs of `EXPERIMENTS`: every method on two demo tasks, and one λ × ζ sweep.
- `studies` carries out every study at its quick scale and keeps each result beside the runs, in `DIR/studies`, or where --results says.
- `pack` writes what the store has to `isoviz/demo/examples` (`factory.example_store`).
- `view` measures the view that Explore opens on anew, `vectors` embeds the demo sets that What-if opens on, and `rulers` measures the
  rulers of these vectors; `pack` does all three too. They need no store and take seconds.
- `verdicts` judges every claim on the packed runs again, by this version, without training.

A store that is named is continued: finished runs are not trained again. Without one, the runs lie in a temporary folder. Training is
serial and takes about 15 minutes of processor time for the grids and an hour for the studies; put `nice` before the command if others need
the machine.
"""

from __future__ import annotations

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from isoviz.config import RunConfig
from isoviz.runs import planning
from isoviz.runs.examples import GROUP, METHODS, SWEEP
from isoviz.runs.planning import MethodChoice

if TYPE_CHECKING:
    from isoviz.studies import Result

STEPS: Final = ("grids", "studies", "pack", "view", "vectors", "rulers", "verdicts")
ENCODER: Final = "demo/tiny-bert"
SEEDS: Final = (0, 1, 2)
SENTENCES, PAIRS = "demo/acceptability", "demo/similarity"
"""A classification of single sentences and a regression on pairs: on both, every baseline clearly beats bag of words."""
SETTINGS: Final = MappingProxyType[str, Any]({"epochs": 3, "max_length": 48, "threads": 1})
"""Settings of the 60-second demo; one thread is fastest for such a small model."""
ROWS: Final = MappingProxyType({SENTENCES: 1000, PAIRS: 1500})

ALL_METHODS: Final[tuple[MethodChoice, ...]] = (
    ("baseline", {}),
    ("isobn", {"beta": 0.5}),
    ("istar", {"lam": 1.0}),
    ("isolayer", {}),
    ("batchnorm", {}),
    ("cosreg", {}),
    ("spectrum_pol", {}),
    ("spectrum_exp", {}),
    ("flow", {}),
)
LAMBDA_ZETA: Final[tuple[MethodChoice, ...]] = (
    ("baseline", {}),
    ("istar", {"lam": [-1.0, 1.0, 3.0, 5.0], "zeta": [0.2, 0.5, 0.8]}),
)


def _runs(methods: Sequence[MethodChoice], *tasks: str) -> list[RunConfig]:
    return [
        config
        for task in tasks
        for config in planning.expand([ENCODER], [task], methods, SEEDS, max_train=ROWS[task], **SETTINGS)
    ]


def experiments() -> Mapping[str, list[RunConfig]]:
    """Name of an experiment → its runs."""
    return {
        METHODS.removeprefix(GROUP): _runs(ALL_METHODS, SENTENCES, PAIRS),
        SWEEP.removeprefix(GROUP): _runs(LAMBDA_ZETA, SENTENCES),
    }


def train_grids(folder: Path) -> int:
    """Train the experiments' runs that are missing from the store in `folder`; returns the number of unfinished runs."""
    from isoviz.commands.train import launch_and_execute
    from isoviz.operations.access.service import of_command_line
    from isoviz.runs.store import Store

    store = Store(folder)
    unfinished = 0
    for name, configs in experiments().items():
        finished = {row.config.identity for row in store.list(group=name, status="finished")}
        lacking = [config for config in configs if config.identity not in finished]
        print(f"{name}: {len(lacking)} of {len(configs)} runs to train", flush=True)
        for config in lacking:  # one at a time, so that an interrupted recording leaves no queue
            rows = launch_and_execute(store, of_command_line(store), [config], name, quiet=True)
            unfinished += any(row.status != "finished" for row in rows)
            if any(row.status == "stopped" for row in rows):
                raise SystemExit("record_examples: interrupted; the same command continues")
    store.close()
    return unfinished


def execute_studies(folder: Path, results: Path) -> int:
    """Run every quick study in the store, so that they share runs, and keep its result; returns the number of failures.

    Prints the seconds of each by the clock and of processor time; where its runs are in the store already, it takes none.
    """
    from isoviz import studies

    took: dict[str, float] = {}
    failed = 0
    # several entries can share one computation
    for slug in dict.fromkeys(entry.study.slug for entry in studies.listed()):
        words = [sys.executable, "-m", "isoviz", "study", "run", slug, "--scale", "quick", "--store", str(folder)]
        before, began = os.times(), time.perf_counter()
        done = subprocess.run(
            [*words, "--out", str(results)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        after, took[slug] = os.times(), time.perf_counter() - began
        used = after.children_user + after.children_system - before.children_user - before.children_system
        failed += done.returncode != 0
        trouble = f"  FAILED: {done.stderr[-500:]}" if done.returncode else ""
        print(f"{took[slug]:7.1f} s  {used:7.1f} s of processor  {slug}{trouble}", flush=True)
    slowest = sorted(took, key=lambda slug: -took[slug])[:2]
    print(f"{sum(took.values()):7.1f} s together on {os.cpu_count()} cores; slowest: {', '.join(slowest)}")
    return failed


def pack(folder: Path, results: Path) -> int:
    """Write the store's finished runs and the studies' results to the package; returns 1 if they are too large."""
    from factory import example_store
    from isoviz.demo import EXAMPLES

    size = example_store.pack(folder, results, EXAMPLES)
    print(f"{EXAMPLES}: {size / 1e6:.1f} MB (at most {example_store.MOST_BYTES / 1e6:.0f})", flush=True)
    return int(size > example_store.MOST_BYTES)


def renew(step: str) -> int:
    """Write the view that Explore opens on, the vectors of the demo sets or their rulers to the package; returns 0."""
    from factory import example_store
    from isoviz.demo import EXAMPLES

    parts = {
        "view": example_store.write_view,
        "vectors": example_store.write_demo_vectors,
        "rulers": example_store.write_demo_rulers,
    }
    print(f"{step}: {parts[step](EXAMPLES) / 1e6:.2f} MB", flush=True)
    return 0


def judged() -> dict[Path, Result]:
    """File → the packed result with the verdicts and notes of this version.

    Figures of layers keep the verdicts of their recording, because the measured layers of single runs do not ship.
    """
    from isoviz import studies
    from isoviz.demo import EXAMPLES
    from isoviz.runs.examples import Examples
    from isoviz.studies import Result, records
    from isoviz.studies.study import TrainedStudy

    examples: Any = Examples()  # read like a store
    results = {}
    for path in sorted((EXAMPLES / "studies").glob("*.json")):
        recorded = Result.model_validate_json(path.read_text(encoding="utf-8"))
        study = studies.get(recorded.provenance.study)
        if not isinstance(study, TrainedStudy):
            renewed: dict[str, Any] = {"verdicts": [claim.verdict(recorded) for claim in study.claims]}
        elif study.profiles:
            renewed = {}
        else:
            drawn = study.draw([records.record(examples, run) for run in recorded.runs], recorded.provenance.scale)
            renewed = {"verdicts": drawn.verdicts, "notes": drawn.notes}
        results[path] = recorded.model_copy(update=renewed)
    return results


def renew_verdicts() -> int:
    """Write the verdicts of this version into the package; returns 0."""
    for path, result in judged().items():
        path.write_text(result.model_dump_json(), encoding="utf-8")
    return 0


def main() -> int:
    """1 where something did not finish; what did is kept and packed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", metavar="DIR", type=Path, help="keep the runs in this folder, or continue there")
    parser.add_argument(
        "--results", metavar="DIR", type=Path, help="the studies' results (default: the folder studies in the store's)"
    )
    parser.add_argument("steps", nargs="*", metavar="STEP", help=f"of {', '.join(STEPS)}")
    options = parser.parse_args()
    if unknown := set(options.steps) - set(STEPS):
        parser.error(f"unknown step {', '.join(sorted(unknown))} (allowed: {', '.join(STEPS)})")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = (options.store or Path(temporary)).absolute()
        os.environ["ISOVIZ_HOME"] = str(folder)  # also holds tokenised rows and views
        results = (options.results or folder / "studies").absolute()
        work: dict[str, Callable[[], int]] = {
            "grids": lambda: train_grids(folder),
            "studies": lambda: execute_studies(folder, results),
            "pack": lambda: pack(folder, results),
            **{step: functools.partial(renew, step) for step in ("view", "vectors", "rulers")},
            "verdicts": renew_verdicts,
        }
        return int(sum(work[step]() for step in STEPS if step in (options.steps or STEPS[:-1])) > 0)


if __name__ == "__main__":
    sys.exit(main())
