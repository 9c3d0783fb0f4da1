"""Available results of studies: recorded ones that ship with the project, and those computed on this machine."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

from pydantic import ValidationError

from dashboard.papers import training
from dashboard.shared import resources
from isoviz import studies
from isoviz.studies import Result, Study, jobs
from isoviz.studies.papers import Source, place_names
from isoviz.studies.result import Figure
from isoviz.studies.trained import TrainedStudy

FOLDER: Final = Path(__file__).resolve().parent.parent.parent / "docs" / "data"
"""Results written by `python -m isoviz study run NAME --out docs/data`."""


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
        """Display name."""
        return f"{ORIGINS[self.origin]}, {self.scale}"


def study_of(source: Source, place: str) -> type[Study] | None:
    """The study that computes a place of a paper; None if no study does."""
    return next(
        (entry.study for entry in studies.listed() if (entry.source, entry.place.name) == (source, place)), None
    )


def records(study: type[Study]) -> list[Record]:
    """All available results of a study: this machine's first, then the recorded ones, the full scale first."""
    return [*computed(study), *shipped(study)]


def computed(study: type[Study]) -> list[Record]:
    """This machine's results: finished computations, or the result of the runs finished so far."""
    if issubclass(study, TrainedStudy):
        runs = training.progress(study)
        return [Record("here", training.result(study, runs))] if runs.stored else []
    return [Record("here", result) for scale in study.scales if (result := jobs.find(study.slug, scale))]


def shipped(study: type[Study]) -> list[Record]:
    """Recorded results, the full scale first; includes studies that contain this one."""
    names = {study.slug, *(other.slug for other in studies.catalogue().values() if study.slug in other.parts)}
    results = [Record("recorded", result) for result in recorded(FOLDER) if result.provenance.study in names]
    if (examples := resources.library().examples) is not None:
        shipped_here = recorded(examples.folder / "studies")
        results += [Record("example", result) for result in shipped_here if result.provenance.study in names]
    return sorted(results, key=lambda record: record.scale)


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


def figures_at(result: Result, place: str) -> list[Figure]:
    """The figures of a result that redraw this place of the paper; all of them if no figure names a place."""
    matching = [figure for figure in result.figures if place in place_names(figure.place)]
    return matching or [figure for figure in result.figures if not place_names(figure.place)]
