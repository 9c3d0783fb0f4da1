"""Available results of studies (recorded ones that ship with the project, and those of this machine), and the runs they still need."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from pydantic import ValidationError

from dashboard.shared import resources
from dashboard.shared.run_lists import cached
from isoviz.config import RunConfig
from isoviz.studies import Result, Study, jobs, layer_profiles
from isoviz.studies import records as study_records
from isoviz.studies.records import RUNNING, RunRecord
from isoviz.studies.study import TrainedStudy

FOLDER: Final = Path(__file__).resolve().parent.parent.parent / "docs" / "data"
"""Results written by `python -m isoviz study run NAME --out docs/data`."""
QUICK: Final = "quick"
ORIGINS: Final = MappingProxyType({"example": "Recorded example", "recorded": "Recorded", "here": "On this machine"})


@dataclass(frozen=True)
class Record:
    """A result and its origin: `example` and `recorded` ship with the project, `here` was computed on this machine."""

    origin: Literal["example", "recorded", "here"]
    result: Result

    @property
    def scale(self) -> str:
        """Scale of the study."""
        return self.result.provenance.scale

    @property
    def complete(self) -> bool:
        """Whether all its runs have finished."""
        return len(self.result.runs) >= self.result.planned

    @property
    def name(self) -> str:
        """Display name; the full scale on fewer rows than the paper's is reduced."""
        reduced = self.scale == "full" and self._first_run.get("max_train") is not None
        return f"{ORIGINS[self.origin]}, {'reduced' if reduced else self.scale}"

    @property
    def _first_run(self) -> dict[str, Any]:
        return dict(self.result.provenance.config.get("first_run", {}))

    @property
    def terms(self) -> str:
        """Encoders, tasks, rows, epochs, learning rate and seeds in a line; what is not recorded is left out."""
        config, run = self.result.provenance.config, self._first_run
        models = [model if isinstance(model, str) else model["name"] for model in config.get("models", [])]
        tasks = [
            task if isinstance(task, str) else f"{task['slug']} ({task['rows']:,} rows)"
            for task in config.get("tasks", [])
        ]
        limits = {"training": run.get("max_train"), "evaluation": run.get("max_eval")}
        rows = [f"{count:,} {what}" for what, count in limits.items() if count]
        parts = [
            ", ".join(models),
            ", ".join(tasks),
            f"{' and '.join(rows)} rows a task" if rows else "all rows" if run else "",
            f"{run['epochs']} epochs" if "epochs" in run else "",
            f"learning rate {run['learning_rate']:g}" if "learning_rate" in run else "",
            f"{len(config['seeds'])} seeds" if "seeds" in config else "",
        ]
        return "; ".join(part for part in parts if part)


def records(study: Study) -> list[Record]:
    """All available results of a study: this machine's first, then the recorded ones, the full scale first."""
    return [*_computed(study), *shipped(study)]


def _computed(study: Study) -> list[Record]:
    """This machine's results: finished computations, or the result of the runs finished so far."""
    if isinstance(study, TrainedStudy):
        runs = progress(study)
        return [Record("here", _so_far(study, runs))] if runs.stored else []
    return [Record("here", result) for scale in study.scales if (result := jobs.find(study.slug, scale))]


def shipped(study: Study) -> list[Record]:
    """Recorded results, the full scale first."""
    results = [Record("recorded", result) for result in recorded(FOLDER)]
    if (examples := resources.library().examples) is not None:
        results += [Record("example", result) for result in recorded(examples.folder / "studies")]
    of_study = (record for record in results if record.result.provenance.study == study.slug)
    return sorted(of_study, key=lambda record: record.scale)


def recorded(folder: Path = FOLDER) -> tuple[Result, ...]:
    """Every recorded result in a folder; other files are skipped."""
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    results = (_read(path, path.stat().st_mtime_ns) for path in files)
    return tuple(result for result in results if result is not None)


@functools.lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> Result | None:
    """`changed` is the file's modification time, so that a rewritten file is read again."""
    del changed
    try:
        return Result.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError:
        return None


# ------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class StudyRuns:
    """The runs of a study's quick scale, and how many of them this store has.

    Attributes:
        planned: all its runs.
        stored: runs in this store.
        missing: runs to launch: neither finished nor queued or running.
        unprofiled: finished runs whose layers have not been measured, for a study that needs them.
    """

    planned: tuple[RunConfig, ...]
    stored: tuple[RunRecord, ...]
    missing: tuple[RunConfig, ...]
    unprofiled: tuple[str, ...] = ()

    @property
    def finished(self) -> int:
        """Number of finished runs."""
        return sum(run.finished for run in self.stored)

    @property
    def under_way(self) -> int:
        """Number of queued or running runs."""
        return sum(run.row.status in RUNNING for run in self.stored)


@functools.cache
def _quick_configs(study: TrainedStudy) -> tuple[RunConfig, ...]:
    """The quick scale uses only bundled models and data, so its runs are resolved once."""
    return tuple(study.configs(QUICK))


def progress(study: TrainedStudy) -> StudyRuns:
    """The runs of the quick scale; read again only after a run in the store has changed."""
    configs = _quick_configs(study)

    def read() -> StudyRuns:
        existing = study_records.read(resources.store(), configs)
        unmeasured = layer_profiles.unmeasured(existing) if study.profiles else []
        return StudyRuns(configs, tuple(existing), tuple(study_records.missing(configs, existing)), tuple(unmeasured))

    # measured profiles are files, so the store's revision does not change
    return read() if study.profiles else cached(("study", study.slug), read)


def _so_far(study: TrainedStudy, runs: StudyRuns) -> Result:
    """The study's result from the runs so far, with gaps for missing runs."""

    def draw() -> Result:
        return study.draw(runs.stored, QUICK)

    return draw() if study.profiles else cached(("result", study.slug), draw)
