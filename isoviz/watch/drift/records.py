"""A baseline as one JSON file, and what a check says."""

from __future__ import annotations

import base64
import os
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from isoviz import input_validation
from isoviz.errors import InputError, input_error, shortened
from isoviz.formatting import number
from isoviz.metrics.copies import zeros_left_out
from isoviz.readouts.slices import Slice
from isoviz.watch.drift.measures import FEWEST, MEASURES

FORMAT: Final = 1
CANARY: Final = 5
"""Fewest rows of a baseline; below `FEWEST`, only paired rows are compared."""
Outcome = Literal["changed", "within tolerance", "cannot tell", "not judged"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Baseline(_Record):
    """What a later set is compared with. It holds vectors, from which texts can partly be recovered: protect it like the texts.

    Attributes:
        n, d: rows and dimensions of the set.
        zeros: rows of zeros in it, which are left out.
        ids: of the kept rows; row numbers from 1 unless `named`.
        vectors: the kept rows, float32, in base64.
        measures: of the kept rows, each with its 95 % interval (delete-a-group jackknife).
        missing: measures that are left out, and why.
        searches: nDCG@10, recall@10 and MRR of each query in the whole set, if relevance was given.
    """

    format: Literal[1] = FORMAT
    n: int
    d: int = Field(ge=2)
    zeros: int = 0
    named: bool
    ids: list[str]
    vectors: str
    measures: dict[str, tuple[float, float, float]]
    missing: dict[str, str]
    searches: dict[str, tuple[float, float, float]] = {}
    versions: dict[str, str]

    @staticmethod
    def encoded(points: NDArray[Any]) -> str:
        return base64.b64encode(points.astype("<f4").tobytes()).decode("ascii")

    @property
    def points(self) -> NDArray[np.float64]:
        """The kept rows, float64."""
        return np.frombuffer(base64.b64decode(self.vectors, validate=True), "<f4").reshape(-1, self.d).astype(float)

    def common(self, ids: Collection[str], *, named: bool = True) -> list[int]:
        """Which of the kept rows have one of these ids (row numbers unless `named`), if these are at least 40 and half of them; of fewer
        than 40 ids, at least 5 and half."""
        others = set(ids) if named == self.named else set()
        common = [row for row, name in enumerate(self.ids) if name in others]
        fewest = FEWEST if min(len(self.ids), len(others)) >= FEWEST else CANARY
        every = len(self.ids) if len(others) >= FEWEST else min(len(self.ids), len(others))
        return common if len(common) >= max(fewest, every / 2) else []

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the JSON file. Raises `InputError` if it cannot be written."""
        target = input_validation.path(path, "save")
        try:
            target.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError.at("save", f"'{target}' cannot be written: {error.strerror}") from None

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Baseline:
        """Read a JSON file. Raises `InputError` if it holds no baseline, or one of another format."""
        file = input_validation.file(path, "baseline")
        try:
            return cls.model_validate(input_validation.json_object(file))
        except ValidationError as error:
            problem = f"'{shortened(file.name)}' holds no baseline: {input_error(error)}"
            raise InputError.at("baseline", problem, "Save it again.") from None


class Drift(_Record):
    """One measure in both sets.

    Attributes:
        before, after: in the baseline and in the new set, on equally many rows; of a distance, 0 and the distance; of paired rows, 1
            and how well they agree.
        change: after − before; `low` and `high` are its interval, and of paired rows that of `after`.
        tolerance: largest change that counts as none, in the measure's own units.
        outcome: `changed` if the whole interval lies beyond the tolerance, `cannot tell` if a part does. Search only
            changes by falling.
        required: also fails where the answer is "cannot tell".
    """

    measure: str
    before: float
    after: float
    change: float
    low: float
    high: float
    tolerance: float
    outcome: Outcome
    required: bool = False

    @property
    def interval(self) -> str:
        return f"{number(self.low)} to {number(self.high)}"


class Check(_Record):
    """What a check says.

    Attributes:
        missing: measures that are left out, and why.
        paired: whether rows are paired by id or row number; otherwise they were matched at random.
        identity: whether paired rows come from the same model, in words; `row_cosines`: the lowest 39 by id.
        rows: rows of each set that are compared; `n`: rows of the baseline's set and of the new one; `zeros`: how many of these are zero
            and left out.
        slices: of paired rows, if requested.
        level: probability with which the intervals of all judged measures hold together.
    """

    drifts: list[Drift]
    missing: dict[str, str]
    paired: bool
    rows: int
    n: tuple[int, int]
    d: int
    level: float
    zeros: tuple[int, int] = (0, 0)
    identity: str = ""
    row_cosines: dict[str, float] = {}
    slices: list[Slice] = []

    def with_outcome(self, outcome: Outcome) -> list[str]:
        """The measures with this outcome; those that changed in the order of how far they lie beyond their tolerance."""
        found = [one for one in self.drifts if one.outcome == outcome]
        return [one.measure for one in sorted(found, key=_excess if outcome == "changed" else lambda _: 0.0)]

    def ok(self, strict: bool = False) -> bool:
        """Whether nothing changed as far as is known; if `strict`, whether that is certain at this level, as for required
        measures and for fewer than 40 rows."""
        strict = strict or self.rows < FEWEST
        unclear = any(one.outcome == "cannot tell" and (strict or one.required) for one in self.drifts)
        return not self.with_outcome("changed") and not unclear

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """The decision in one sentence."""
        where = f"n = {self.rows:,} {'paired ' if self.paired else ''}rows, d = {self.d}{self.identity and '; '}{self.identity}"
        if changed := self.with_outcome("changed"):
            most = next(one for one in self.drifts if one.measure == changed[0])
            others = f"; {', '.join(changed[1:])} changed, too" if changed[1:] else ""
            return (
                f"{most.measure} changed from {number(most.before)} to {number(most.after)}, by {number(most.change)} "
                f"(interval {most.interval}, tolerance {number(most.tolerance)}; {where}){others}."
            )
        if unclear := self.with_outcome("cannot tell"):
            names = ", ".join(unclear)
            passes, fails = f"No change was found, but {names} may have changed", f"Cannot tell whether {names} changed"
            return f"{passes if self.ok() else fails} ({where})."
        return f"Nothing changed beyond its tolerance ({where})."

    def notes(self) -> list[str]:
        """What a reader must know."""
        unclear = [
            f"cannot tell whether {one.measure} changed: its interval, {one.interval}, straddles the tolerance of "
            f"{number(one.tolerance)}"
            for one in self.drifts
            if one.outcome == "cannot tell"
        ]
        if unclear and not self.paired:
            unclear.append("rows are not paired; if the texts are the same, ids or row numbers make intervals shorter")
        sets = zip(("in the baseline, ", ""), self.n, self.zeros, strict=True)
        left_out = [f"{where}{zeros_left_out(n, n - count)}" for where, n, count in sets if count]
        return [*left_out, *unclear, *missing_notes(self.missing)]


def missing_notes(missing: Mapping[str, str]) -> list[str]:
    """One note for each reason."""
    reasons = dict.fromkeys(missing.values())
    return [f"{', '.join(name for name in missing if missing[name] == why)} left out: {why}" for why in reasons]


def _excess(drift: Drift) -> float:
    """Lowest for the change that lies farthest beyond its tolerance, in widths of its interval."""
    origin = drift.before * MEASURES[drift.measure].agreement
    nearest = min(abs(drift.low - origin), abs(drift.high - origin))
    return (drift.tolerance - nearest) / max(drift.high - drift.low, 1e-300)
