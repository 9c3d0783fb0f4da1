"""Declarations of parameters and papers for methods and post-hoc transforms."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

ParamValue = bool | int | float | str
"""A parameter's value in a configuration."""


@dataclass(frozen=True)
class Paper:
    """The source of a method, transform or measure.

    Attributes:
        short: "Zhou et al. 2021".
        bibtex: its entry, with a line for each field.
    """

    short: str
    bibtex: str

    @property
    def title(self) -> str:
        """The entry's title as plain text."""
        title = re.sub(r"\s+", " ", self._field("title"))
        return re.sub("``|''", "'", re.sub("[{}]", "", title))

    def _field(self, name: str) -> str:
        found = re.search(rf"^ *{name}=\{{(.*?)\}},?$", self.bibtex, re.MULTILINE | re.DOTALL)
        assert found is not None, f"{self.short}: no {name}"
        return found[1]


def parameter(
    default: Any,
    *,
    label: str,
    symbol: str = "",
    help: str,
    source: str,
    sweep: tuple[Any, ...] = (),
    suggested: bool = False,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    slider: tuple[float, float, float] | None = None,
    stops: tuple[float, ...] = (),
    start: Any = None,
    off_scale: tuple[float, ...] = (),
) -> Any:
    """Declare a parameter once, for the form, command line, validation, docs and sweeps.

    Args:
        default: the default value.
        label: plain words ("Strength").
        symbol: the paper's symbol ("λ"), if it has one.
        help: one or two sentences on its effect.
        source: paper, section or equation.
        sweep: values offered as a preset: the paper's search range, or other `suggested` ones.
        suggested: the paper prints no such range; the values of `sweep` are ours.
        ge, gt, le, lt: bounds.
        slider: lowest, highest and step of its What-if slider, if that is not the full allowed range.
        stops: discrete slider values, used instead.
        start: initial value in What-if, if the default would be too strong.
        off_scale: values with a special meaning, such as 0 for all layers, which figures draw as horizontal lines.
    """
    extra: dict[str, Any] = {"symbol": symbol, "source": source, "sweep": list(sweep)}
    hints = {"slider": slider, "stops": stops, "start": start, "off_scale": list(off_scale), "suggested": suggested}
    extra |= {name: value for name, value in hints.items() if value}
    return Field(default, title=label, description=help, ge=ge, gt=gt, le=le, lt=lt, json_schema_extra=extra)


def declared_in(params: type[BaseModel], name: str, *, help: str = "") -> Any:
    """A parameter that another class declares, so that a method and its transform share it; perhaps with another help text."""
    field = copy(params.model_fields[name])
    field.description = help or field.description
    return field


def start_values(params: type[BaseModel]) -> dict[str, Any]:
    """The initial values in What-if that differ from the defaults."""
    return {name: extra(field)["start"] for name, field in params.model_fields.items() if "start" in extra(field)}


def off_scale(params: type[BaseModel], name: str) -> tuple[float, ...]:
    """A parameter's special values that are not on its scale; empty if the parameter does not exist."""
    field = params.model_fields.get(name)
    return tuple(extra(field).get("off_scale", ())) if field else ()


def bounds_text(field: FieldInfo) -> str:
    """`at least 0, at most 1`, from the field's bounds; for a choice the names of its options; empty if unrestricted."""
    if choices := choices_of(field):
        return ", ".join(str(choice) for choice in choices)
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    limits = bounds(field)
    return ", ".join(f"{word} {limits[name]:g}" for name, word in words.items() if name in limits)


def bounds(field: FieldInfo) -> dict[str, float]:
    """The field's numeric bounds by pydantic's names."""
    return {
        name: float(getattr(item, name))
        for item in field.metadata
        for name in ("ge", "gt", "le", "lt")
        if getattr(item, name, None) is not None
    }


def choices_of(field: FieldInfo) -> tuple[Any, ...]:
    """The options of a field with few values: those of a Literal, or no and yes."""
    if field.annotation is bool:
        return (False, True)
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def extra(field: FieldInfo) -> dict[str, Any]:
    """The field's extra declarations: `symbol`, `source` and `sweep` of a parameter."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


def sweep_title(field: FieldInfo) -> str:
    """What the values of `sweep` are."""
    return "Values to try" if extra(field).get("suggested") else "Paper's range"


class Params(BaseModel):
    """Base of the parameters of a method or transform. Subclasses declare fields with `parameter`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
