"""How methods and post-hoc transforms declare their parameters and the paper they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field
from pydantic.fields import FieldInfo

ParamValue = bool | int | float | str
"""A parameter as it stands in a configuration."""


@dataclass(frozen=True)
class Paper:
    """Where something comes from."""

    short: str
    title: str
    year: int
    bibtex: str


def parameter(
    default: Any,
    *,
    label: str,
    symbol: str,
    help: str,
    source: str,
    sweep: tuple[Any, ...] = (),
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    slider: tuple[float, float, float] | None = None,
    stops: tuple[float, ...] = (),
    start: Any = None,
    off_scale: tuple[float, ...] = (),
) -> Any:
    """Declare one parameter, once: form, command line, validation, docs and sweeps read it from here.

    Args:
        default: the value used when nothing is said.
        label: plain words ("Strength").
        symbol: as in the paper ("λ").
        help: one or two sentences on what it does.
        source: paper, section or equation it comes from.
        sweep: the paper's own search range, offered as a preset.
        ge, gt, le, lt: bounds.
        slider: lowest, highest and step of its slider in What-if, where that is not the whole of what is allowed.
        stops: the values that its slider offers instead.
        start: the value of a step that is added in What-if, where the default would do too much at once.
        off_scale: values that mean something else than a place on the parameter's scale, as 0 for all layers: figures draw them as
            level lines.
    """
    extra: dict[str, Any] = {"symbol": symbol, "source": source, "sweep": list(sweep)}
    hints = {"slider": slider, "stops": stops, "start": start, "off_scale": list(off_scale)}
    extra |= {name: value for name, value in hints.items() if value}
    return Field(default, title=label, description=help, ge=ge, gt=gt, le=le, lt=lt, json_schema_extra=extra)


def start_values(params: type[BaseModel]) -> dict[str, Any]:
    """The parameters that start elsewhere than at their default when a step is added in What-if."""
    extras = {name: field.json_schema_extra for name, field in params.model_fields.items()}
    return {name: extra["start"] for name, extra in extras.items() if isinstance(extra, dict) and "start" in extra}


def off_scale(params: type[BaseModel], name: str) -> tuple[float, ...]:
    """The values of a parameter that are no places on its scale; none of a parameter that does not exist."""
    field = params.model_fields.get(name)
    extra = field.json_schema_extra if field else None
    return tuple(extra.get("off_scale", ())) if isinstance(extra, dict) else ()  # type: ignore[arg-type]


def bounds_text(field: FieldInfo) -> str:
    """`at least 0, at most 1`, from the field's own bounds; names of choices for a choice; empty if anything goes."""
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
    """The values of a field that has few: those of a Literal, or no and yes."""
    if field.annotation is bool:
        return (False, True)
    return get_args(field.annotation) if get_origin(field.annotation) is Literal else ()


def extra(field: FieldInfo) -> dict[str, Any]:
    """What is declared beside the field: `symbol`, `source` and `sweep` of a parameter, `section` of a setting."""
    return field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}


class Params(BaseModel):
    """Base of all parameters of one thing. Subclasses declare fields with `parameter`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
