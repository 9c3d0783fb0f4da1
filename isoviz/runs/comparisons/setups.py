"""Determines which runs can be compared: those that differ only in the seed and the compared setting."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.errors import DifferentSetupsError, unknown_name
from isoviz.events import Started
from isoviz.runs.naming import method_title, parameter_symbols, setting, variant
from isoviz.runs.rows import RunRow

METHOD = "method"
"""The default comparison: methods with their parameters."""

_PARTS = ("model", "task", "data", "own", "direction")
"""Runs that differ in one of these appear in separate parts of a table and are never pooled."""
_KEEP_PAIRS = frozenset(
    {METHOD, "learning_rate", "schedule", "warmup_ratio", "weight_decay", "epochs", "grad_accum", "precision"}
    | {"early_stopping", "select", "num_beams", "processes", "accelerate_config"}
)
"""Settings that do not affect a seed's order of training rows or its new weights, so that runs of the same seed are pairs. Any
other setting (model, batch size, maximum length, training rows) changes one of the two."""
_NOT_COMPARED = frozenset(
    {"version", "seed", "threads", "checkpoint_minutes", "report_to", "params", "task", "data", "own", "direction"}
    | {"allow_unknown"}
)


_CONTENTS = {"content of the data": "data_fingerprint", "content of the model": "model_fingerprint"}
"""What may change under the same name → the field of `Started` that identifies it."""


@dataclass(frozen=True)
class Factor:
    """The compared setting.

    Attributes:
        name: `method` (with its parameters), a field of `RunConfig`, or a parameter of a method.
        parameter: whether it is a method parameter.
    """

    name: str
    parameter: bool

    @classmethod
    def named(cls, name: str, rows: Iterable[RunRow]) -> Factor:
        """The factor with this name; `InputError` with the allowed names if there is none."""
        fields = [field_name for field_name in RunConfig.model_fields if field_name not in _NOT_COMPARED]
        if name in fields:
            return cls(name, False)
        parameters = list(dict.fromkeys(parameter for row in rows for parameter in row.config.params))
        if name in parameters:
            return cls(name, True)
        raise unknown_name("setting to compare by", name, [*fields, *parameters], field="by")

    @property
    def pairs(self) -> bool:
        """Whether runs of the same seed share the order of their training rows and their new weights."""
        return self.parameter or self.name in _KEEP_PAIRS

    def key(self, config: RunConfig) -> str:
        """Key shared by the runs of one arm, which differ only in the seed."""
        if self.name == METHOD:
            return json.dumps([config.method, config.params], sort_keys=True)
        return json.dumps(config.params.get(self.name) if self.parameter else getattr(config, self.name))

    def label(self, config: RunConfig) -> str:
        """`IsoBN β = 0.5`, `λ = −1`, `epochs 3`."""
        if self.name == METHOD:
            return " ".join(filter(None, [method_title(config.method), variant(config.method, config.params)]))
        if self.parameter:
            symbol = parameter_symbols(config.method).get(self.name, self.name)
            value = setting(config.params[self.name]) if self.name in config.params else "none"
            return f"{symbol} = {value}"
        return f"{self.name} {setting(getattr(config, self.name))}"

    def order(self, config: RunConfig) -> tuple[Any, ...]:
        """Sort key for arms: the catalogue's order of methods, then values."""
        values = config.params.values() if self.name == METHOD else [json.loads(self.key(config))]
        return (methods.place(config.method), [sortable(value) for value in values])

    def rest(self, config: RunConfig) -> dict[str, Any]:
        """All settings except the seed and the compared one; method parameters by name."""
        settings: dict[str, Any] = json.loads(config.setup_key())
        params = settings.pop("params")
        if self.name == METHOD:
            settings.pop(METHOD)
            return settings
        settings |= {f"params.{name}": value for name, value in params.items()}
        settings.pop(f"params.{self.name}" if self.parameter else self.name, None)
        return settings


def sortable(value: Any) -> tuple[int, float, str]:
    """A key that puts numbers in their order, then everything else in that of its text."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, float(value), "") if number else (1, 0.0, str(value))


@dataclass
class SideBySide:
    """The runs of one part of a table, which differ only in the seed and the compared setting.

    Attributes:
        settings: the shared settings.
        arms: label → its runs, in order.
    """

    settings: dict[str, Any]
    arms: dict[str, list[RunRow]]

    @property
    def rows(self) -> list[RunRow]:
        """The runs of all arms."""
        return [row for rows in self.arms.values() for row in rows]


def side_by_side(
    rows: Sequence[RunRow], factor: Factor, started: Mapping[str, Started | None] | None = None
) -> list[SideBySide]:
    """The parts of a table, one per model and task.

    Raises:
        DifferentSetupsError: runs of one part also differ in other settings, or read different data or weights under the same
            name.
    """
    grouped: dict[str, list[RunRow]] = {}
    for row in rows:
        shared = factor.rest(row.config)
        place_key = json.dumps([shared.get(name) for name in _PARTS], sort_keys=True)
        grouped.setdefault(place_key, []).append(row)
    parts = []
    for members in grouped.values():
        settings = [factor.rest(row.config) for row in members]
        _refuse_different(factor, members, settings, started or {})
        ordered = sorted(members, key=lambda row: (factor.order(row.config), row.config.seed, row.id))
        arms: dict[str, list[RunRow]] = {}
        for row in ordered:
            arms.setdefault(factor.key(row.config), []).append(row)
        parts.append(SideBySide(settings[0], dict(zip(_labels(factor, arms), arms.values(), strict=True))))
    return parts


def _labels(factor: Factor, arms: Mapping[str, Sequence[RunRow]]) -> list[str]:
    """One label per arm; labels that would be equal after shortening numbers are written in full."""
    short = [factor.label(rows[0].config) for rows in arms.values()]
    return [f"{label} {key}" if short.count(label) > 1 else label for label, key in zip(short, arms, strict=True)]


def comparable(rows: Iterable[RunRow], started: Mapping[str, Started | None]) -> dict[str, list[str]]:
    """Runs of several methods that share everything else: a label with what tells them from the other runs → their ids.

    The runs launched last come first.
    """
    factor = Factor(METHOD, False)
    described: dict[str, dict[str, Any]] = {}
    members: dict[str, list[RunRow]] = {}
    for row in sorted(rows, key=lambda row: row.id, reverse=True):
        start = started.get(row.id)
        contents = {name: getattr(start, field) for name, field in _CONTENTS.items() if start is not None}
        settings = factor.rest(row.config) | contents
        key = json.dumps(settings, sort_keys=True)
        described[key] = settings
        members.setdefault(key, []).append(row)
    differing = _differing(described.values())
    groups = {}
    for key, runs in members.items():
        if len({factor.key(run.config) for run in runs}) > 1:
            parts = [f"{name} {setting(described[key].get(name))}" for name in differing if name not in _CONTENTS]
            launched = time.strftime("%Y-%m-%d %H:%M", time.localtime(runs[0].created))
            label = ", ".join([*parts, f"{len(runs)} runs", f"newest of {launched}"])
            while label in groups:
                label += ", earlier"
            groups[label] = [run.id for run in runs]
    return groups


def _refuse_different(
    factor: Factor,
    rows: Sequence[RunRow],
    settings: Sequence[Mapping[str, Any]],
    started: Mapping[str, Started | None],
) -> None:
    starts = (start for row in rows if (start := started.get(row.id)) is not None)
    contents = [{name: getattr(start, field) for name, field in _CONTENTS.items()} for start in starts]
    differing = _differing(settings) | _differing(contents)
    differing.pop(f"content of the {factor.name}", None)
    if differing:
        listed = "; ".join(
            name if name in _CONTENTS else f"{name}: {', '.join(values)}" for name, values in differing.items()
        )
        config = rows[0].config
        raise DifferentSetupsError(
            f"these runs of {config.model} on {config.task} cannot be compared by {factor.name}, because they also differ in "
            f"{listed}",
            advice="Compare runs of one experiment, or runs that share these settings.",
        )


def _differing(settings: Collection[Mapping[str, Any]]) -> dict[str, list[str]]:
    names = dict.fromkeys(name for of_run in settings for name in of_run)
    values = {name: [of_run.get(name) for of_run in settings] for name in names}
    words = {
        name: list(dict.fromkeys("not set" if value is None else setting(value) for value in every))
        for name, every in values.items()
    }
    return {name: distinct for name, distinct in words.items() if len(distinct) > 1}
