"""How methods and post-hoc transforms declare their parameters and the paper they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

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
    """
    extra: dict[str, Any] = {"symbol": symbol, "source": source, "sweep": list(sweep)}
    hints = {"slider": slider, "stops": stops, "start": start}
    extra |= {name: value for name, value in hints.items() if value}
    return Field(default, title=label, description=help, ge=ge, gt=gt, le=le, lt=lt, json_schema_extra=extra)


def start_values(params: type[BaseModel]) -> dict[str, Any]:
    """The parameters that start elsewhere than at their default when a step is added in What-if."""
    extras = {name: field.json_schema_extra for name, field in params.model_fields.items()}
    return {name: extra["start"] for name, extra in extras.items() if isinstance(extra, dict) and "start" in extra}


class Params(BaseModel):
    """Base of all parameters of one thing. Subclasses declare fields with `parameter`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
