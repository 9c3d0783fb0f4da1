"""The store's runs as studies read them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from isoviz import tasks
from isoviz.comparisons.comparing import value_of, why_excluded
from isoviz.config import RunConfig
from isoviz.events import Started
from isoviz.metrics.record import CloudRecord
from isoviz.runs.rows import RunRow
from isoviz.statistics import mean_sd

if TYPE_CHECKING:
    from isoviz.runs.store import Store

PROFILE: Final = "layer_profile.json"
"""In a run's folder: what `isoviz.studies.layer_profiles` measured of it."""


@dataclass(frozen=True)
class LayerProfile:
    """A finished run's encoder, layer by layer, on the validation rows.

    Attributes:
        layers: numbers of the layers, from 0 (the embedding output).
        twonn: of the first token's vectors of each layer; None where undefined.
        isoscore_star: of each layer's tokens, ζ = 0.2, Σ_S from training tokens of the same layer.
        mean_activation: of the last layer's tokens, one number per dimension.
        rows: validation rows that were read.
    """

    layers: tuple[int, ...]
    twonn: tuple[float | None, ...]
    isoscore_star: tuple[float | None, ...]
    mean_activation: tuple[float, ...]
    rows: int

    def as_json(self) -> str:
        """For a file; `from_json` reads it."""
        return json.dumps(vars(self))

    @classmethod
    def from_json(cls, text: str) -> LayerProfile:
        """The profile from the result of `as_json`."""
        fields: dict[str, Any] = json.loads(text)
        values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**values)


@dataclass(frozen=True)
class RunRecord:
    """One run as studies see it.

    Attributes:
        row: the run as the store has it, finished or not.
        started: the run's `Started` event (data, versions, scores of simple approaches); None before it began.
        layers: its encoder layer by layer; None where that was not measured.
    """

    row: RunRow
    started: Started | None = None
    layers: LayerProfile | None = None

    @property
    def config(self) -> RunConfig:
        """Its configuration."""
        return self.row.config

    @property
    def seed(self) -> int:
        return self.row.config.seed

    @property
    def finished(self) -> bool:
        return self.row.status == "finished"

    @property
    def primary(self) -> str:
        """The metric by which runs on its task are compared."""
        return tasks.get(self.config.task, self.config.own).primary

    def number(self, name: str) -> float | None:
        """A task metric, a measure of isotropy by its slug where the run reports it, or `ev_2`, `ev_3`, `weight_norm`, `minutes_per_epoch`.

        None where there is none.
        """
        if not self.finished or self.row.result is None:
            return None
        if name in ("ev_2", "ev_3"):
            curve = self.row.result.isotropy.curve("ev")
            return curve[int(name[-1]) - 1] if len(curve) >= int(name[-1]) else None
        if name == "weight_norm":
            output = self.row.result.isotropy.output
            return output.norm if output else None
        if name == "minutes_per_epoch":
            seconds = self.row.result.timing.get("seconds_per_epoch")
            return None if seconds is None else seconds / 60
        return value_of(self.row, name)

    def why_without(self, name: str) -> str:
        """Why the run counts in no mean of that number; "" where it counts.

        The scores of a collapsed run do not count, its isotropy and its time do: they are what the collapse is seen by.
        """
        of_task = self.row.result is not None and name in self.row.result.metrics
        if of_task or not self.finished:
            return why_excluded(self.row, name)
        return "" if self.number(name) is not None else f"{name} is undefined"

    def cloud(self, name: str) -> CloudRecord | None:
        """One measured cloud of a finished run."""
        return self.row.result.isotropy.cloud(name) if self.row.result else None


@dataclass(frozen=True)
class Cell:
    """One number over seeds.

    Attributes:
        values: seed → value.
        planned: how many runs there will be.
        excluded: why each run that is left out has no number.
    """

    values: Mapping[int, float]
    planned: int
    excluded: tuple[str, ...] = ()

    @property
    def mean(self) -> float | None:
        return mean_sd(self.values.values())[0]

    @property
    def sd(self) -> float | None:
        return mean_sd(self.values.values())[1]

    @property
    def median(self) -> float | None:
        return statistics.median(self.values.values()) if self.values else None

    @property
    def complete(self) -> bool:
        """Whether all runs have ended, with or without a number."""
        return len(self.values) + len(self.excluded) >= self.planned

    def text(self, scale: float = 1.0, decimals: int = 3, middle: str = "mean") -> str:
        """`0.812 ± 0.010`, with what is missing: `0.812 (1 of 3 runs)`, `— (0 of 3 runs)`, `— (3 collapsed)`."""
        value = self.median if middle == "median" else self.mean
        value_text = "—" if value is None else f"{scale * value:.{decimals}f}"
        if self.sd is not None and value is not None:
            value_text += (
                f" ({scale * self.sd:.{decimals}f})" if middle == "median" else f" ± {scale * self.sd:.{decimals}f}"
            )
        missing = []
        if not self.complete:
            missing.append(f"{len(self.values) + len(self.excluded)} of {self.planned} runs")
        if self.excluded:
            missing.append(f"{len(self.excluded)} without a number")
        return f"{value_text} ({'; '.join(missing)})".replace("-", "−") if missing else value_text.replace("-", "−")


def read(store: Store, configs: Sequence[RunConfig], *, since: str = "") -> list[RunRecord]:
    """The store's runs of these configurations, in their order: of equal ones the newest that finished, else the newest.

    Args:
        since: only runs with this id or a later one; "" for all.
    """
    identities = {config.identity for config in configs}
    newest: dict[tuple[str, int], tuple[bool, str]] = {}
    for summary in store.summaries():
        key = (summary.setup, summary.seed)
        if key in identities and not summary.unreadable and summary.id >= since:
            newest[key] = max(newest.get(key, (False, "")), (summary.status == "finished", summary.id))
    run_ids = [newest[key][1] for config in configs if (key := config.identity) in newest]
    return [record(store, run_id) for run_id in run_ids]


def record(store: Store, run_id: str) -> RunRecord:
    """One run of the store."""
    starts = store.events_of_kind(run_id, Started, limit=1)
    profile = store.path_of(run_id) / PROFILE
    layers = LayerProfile.from_json(profile.read_text(encoding="utf-8")) if profile.is_file() else None
    return RunRecord(store.get(run_id), starts[0] if starts else None, layers)


def missing(configs: Sequence[RunConfig], runs: Iterable[RunRecord]) -> list[RunConfig]:
    """The configurations that have no run that finished or is under way: what has to be launched."""
    launched = {run.config.identity for run in runs if run.row.status in ("finished", "queued", "running")}
    return [config for config in configs if config.identity not in launched]
