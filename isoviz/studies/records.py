"""Runs as studies see them: those a study plans, records of those the store has, and one number over their seeds."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pydantic import BaseModel, ConfigDict

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.events import Started
from isoviz.runs.comparisons.comparing import value_of, why_excluded
from isoviz.runs.rows import RunRow
from isoviz.statistics import mean_sd

if TYPE_CHECKING:
    from isoviz.runs.store import Store

PROFILE: Final = "layer_profile.json"
"""In a run's folder: what `isoviz.studies.layer_profiles` measured of it."""
RUNNING: Final = ("queued", "running")


class LayerProfile(BaseModel):
    """A finished run's encoder, layer by layer, on the validation rows.

    Attributes:
        layers: numbers of the layers, from 0 (the embedding output).
        twonn: of the first token's vectors of each layer; None where undefined.
        isoscore_star: of each layer's tokens, ζ = 0.2, Σ_S from training tokens of the same layer.
        mean_activation: of the last layer's tokens, one number per dimension.
        rows: validation rows that were read.
    """

    model_config = ConfigDict(frozen=True)
    layers: tuple[int, ...]
    twonn: tuple[float | None, ...]
    isoscore_star: tuple[float | None, ...]
    mean_activation: tuple[float, ...]
    rows: int


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

    def curve(self, components: int) -> tuple[float, ...]:
        """EV_1, EV_2, … of the classifier's input, at most so many."""
        return self.row.result.isotropy.curve("ev")[:components] if self.row.result else ()

    def number(self, name: str) -> float | None:
        """A task metric, a measure of isotropy by its slug where the run reports it, or `ev_2`, `ev_3`, `weight_norm`, `minutes_per_epoch`.

        None where there is none.
        """
        if not self.finished or self.row.result is None:
            return None
        match name:
            case "ev_2" | "ev_3":
                curve = self.curve(int(name[-1]))
                return curve[-1] if len(curve) == int(name[-1]) else None
            case "weight_norm":
                output = self.row.result.isotropy.output
                return output.norm if output else None
            case "minutes_per_epoch":
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


Ends: TypeAlias = tuple[float, float, float]
"""Mean, and mean ∓ standard deviation."""


def mean_and_ends(values: Iterable[float | None]) -> Ends | None:
    """None without a value. One value has no spread: both ends are the mean."""
    mean, sd = mean_sd(values)
    return None if mean is None else (mean, mean - (sd or 0.0), mean + (sd or 0.0))


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
    def ends(self) -> Ends | None:
        """See `mean_and_ends`."""
        return mean_and_ends(self.values.values())

    def text(self, decimals: int = 3, middle: str = "mean") -> str:
        """`0.812 ± 0.010`, with what is missing: `0.812 (1 of 3 runs)`, `— (0 of 3 runs)`, `— (3 without a number)`."""
        value = self.median if middle == "median" else self.mean
        text = "—" if value is None else f"{value:.{decimals}f}"
        if self.sd is not None:
            text += f" ({self.sd:.{decimals}f})" if middle == "median" else f" ± {self.sd:.{decimals}f}"
        missing = []
        ended = len(self.values) + len(self.excluded)
        if ended < self.planned:
            missing.append(f"{ended} of {self.planned} runs")
        if self.excluded:
            missing.append(f"{len(self.excluded)} without a number")
        return (f"{text} ({'; '.join(missing)})" if missing else text).replace("-", "−")


@dataclass(frozen=True)
class Evidence:
    """Planned runs, and records of those that exist.

    Attributes:
        planned: the runs as the study declares them.
        runs: records, at most one per planned run; a study draws the existing ones.
    """

    planned: tuple[RunConfig, ...]
    runs: tuple[RunRecord, ...]

    def where(self, test: Callable[[RunConfig], bool] | None = None, **fields: Any) -> Evidence:
        """The subset whose configurations have these fields or method parameters, and pass the test."""

        def chosen(config: RunConfig) -> bool:
            matches = all(_field(config, name) == value for name, value in fields.items())
            return matches and (test is None or test(config))

        return Evidence(
            tuple(config for config in self.planned if chosen(config)),
            tuple(run for run in self.runs if chosen(run.config)),
        )

    def distinct(self, name: str) -> list[Any]:
        """The planned values of a field or parameter, in order, without runs whose method lacks the parameter."""
        return [value for value in dict.fromkeys(_field(config, name) for config in self.planned) if value is not None]

    def each(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Every combination of the values of some fields, the last field changing fastest, followed by its runs."""
        for values in itertools.product(*map(self.distinct, names)):
            yield *values, self.where(**dict(zip(names, values, strict=True)))

    @property
    def tasks(self) -> list[str]:
        return self.distinct("task")

    @property
    def models(self) -> list[str]:
        return self.distinct("model")

    @property
    def finished(self) -> list[RunRecord]:
        return [run for run in self.runs if run.finished]

    @property
    def unfinished(self) -> int:
        """Number of planned runs that have not ended."""
        return len(self.planned) - sum(run.row.status not in RUNNING for run in self.runs)

    def cell(self, metric: str) -> Cell:
        """A metric over all runs of this evidence, by seed."""
        values, excluded = {}, []
        for run in self.runs:
            value = run.number(metric)
            if run.row.status in RUNNING:
                continue
            if (reason := run.why_without(metric)) or value is None:
                excluded.append(f"seed {run.seed}: {reason}")
            else:
                values[run.seed] = value
        return Cell(values, len(self.planned), tuple(excluded))

    def best(self, metric: str, *names: str) -> Evidence | None:
        """The planned setting of these parameters with the highest mean; None before any run has finished."""
        settings: dict[tuple[Any, ...], None] = dict.fromkeys(
            tuple(config.params[name] for name in names) for config in self.planned
        )
        parts = [self.where(**dict(zip(names, values, strict=True))) for values in settings]
        means = [(mean, -index) for index, part in enumerate(parts) if (mean := part.cell(metric).mean) is not None]
        return parts[-max(means)[1]] if means else None

    def texts(self, *metrics: str, decimals: int = 3) -> list[str]:
        """The cells of some metrics as text."""
        return [self.cell(metric).text(decimals) for metric in metrics]

    def learned(self) -> bool | None:
        """Whether the baseline beats the best simple approach (such as bag of words) in every seed; without baseline runs, whether
        any run does. None without simple approaches."""
        baseline = self.where(method="baseline")
        answers = []
        for run in (baseline if baseline.planned else self).finished:
            levels = [value for value in (run.started.baselines if run.started else {}).values() if value is not None]
            value = run.number(tasks.get(run.config.task, run.config.own).primary)
            if levels and value is not None:
                answers.append(value > max(levels))
        if not answers:
            return None
        return all(answers) if baseline.planned else any(answers)

    def unlearned(self) -> list[str]:
        """Tasks on which `learned` is False."""
        return [task for task, part in self.each("task") if part.learned() is False]


def _field(config: RunConfig, name: str) -> Any:
    return getattr(config, name) if name in RunConfig.model_fields else config.params.get(name)


def task_title(slug: str) -> str:
    """A task's title without "(demo)", which every caption of a quick study would repeat."""
    task = tasks.catalogue().get(slug)
    return task.title.removesuffix(" (demo)") if task else slug


def read(store: Store, configs: Sequence[RunConfig]) -> list[RunRecord]:
    """The store's runs of these configurations, in their order: of equal ones the newest that finished, else the newest."""
    identities = {config.identity for config in configs}
    newest: dict[tuple[str, int], tuple[bool, str]] = {}
    for summary in store.summaries():
        key = (summary.setup, summary.seed)
        if key in identities:
            newest[key] = max(newest.get(key, (False, "")), (summary.status == "finished", summary.id))
    run_ids = [newest[key][1] for config in configs if (key := config.identity) in newest]
    return [record(store, run_id) for run_id in run_ids]


def record(store: Store, run_id: str) -> RunRecord:
    """One run of the store."""
    starts = store.events_of_kind(run_id, Started, limit=1)
    profile = store.path_of(run_id) / PROFILE
    layers = LayerProfile.model_validate_json(profile.read_bytes()) if profile.is_file() else None
    return RunRecord(store.get(run_id), starts[0] if starts else None, layers)


def missing(configs: Sequence[RunConfig], runs: Iterable[RunRecord]) -> list[RunConfig]:
    """The configurations that have no run that finished or is under way: what has to be launched."""
    launched = {run.config.identity for run in runs if run.row.status in ("finished", *RUNNING)}
    return [config for config in configs if config.identity not in launched]
