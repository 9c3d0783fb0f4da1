"""A chain of transforms as text short enough for an address, and back: `all_but_the_top:remove=2~isobn:beta=0.5`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pydantic import ValidationError

from isoviz import methods, posthoc
from isoviz.errors import InputError, input_error, unknown_name
from isoviz.parameters import Params
from isoviz.posthoc.protocol import InTraining
from isoviz.whatif.layer import IsoLayerTransform

MOST_STEPS: Final = 8
LONGEST: Final = 1_000
NONE: Final = "none"
"""Text of the empty chain."""


@dataclass(frozen=True)
class Step:
    """One transform with its parameters, not fitted.

    Attributes:
        slug: a key of `catalogue()`.
        params: all parameters.
    """

    slug: str
    params: Params

    @property
    def kind(self) -> Any:
        """The step's class."""
        return catalogue()[self.slug]

    @property
    def title(self) -> str:
        """Title on screen."""
        return str(self.kind.name(self.params))

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        fields = type(self.params).model_fields
        return {name: value for name, value in self.params.model_dump().items() if value != fields[name].default}

    @property
    def text(self) -> str:
        """`isobn:beta=1`; parameters at their defaults are left out."""
        written = ",".join(f"{name}={_written(value)}" for name, value in self.changed.items())
        return f"{self.slug}:{written}" if written else self.slug

    @property
    def in_training(self) -> InTraining | str:
        """The equivalent training method with all its parameters, or the reason why there is none."""
        equivalent: InTraining | str = self.kind.in_training(self.params)
        if isinstance(equivalent, str):
            return equivalent
        return replace(equivalent, params=methods.check_params(equivalent.method, equivalent.params))

    def make(self) -> posthoc.CataloguedTransform:
        """The transform, not fitted. Not for steps that need labels."""
        transform: posthoc.CataloguedTransform = self.kind(**self.params.model_dump())
        return transform


def catalogue() -> Mapping[str, type[posthoc.CataloguedTransform]]:
    """Classes of the possible steps, by slug."""
    return {**posthoc.catalogue(), IsoLayerTransform.slug: IsoLayerTransform}


def step(slug: str, **values: Any) -> Step:
    """A checked step. Raises `InputError` for invalid values."""
    if slug not in catalogue():
        raise unknown_name("transform", slug, catalogue(), field="chain")
    params = catalogue()[slug].Params
    for name in values:
        if name not in params.model_fields:
            raise unknown_name(f"parameter of '{slug}'", name, params.model_fields, field="chain")
    try:
        return Step(slug, params.model_validate(values))
    except ValidationError as error:
        raise InputError(f"{slug}: {input_error(error)}", field="chain") from None


def write(steps: Iterable[Step]) -> str:
    """A chain as text; the inverse of `read`."""
    return "~".join(step.text for step in steps) or NONE


def read(text: str) -> tuple[Step, ...]:
    """Parse a chain.

    Raises:
        InputError: with field `chain`; names the step, its value and the allowed values.
    """
    if len(text) > LONGEST:
        raise InputError(f"chain: at most {LONGEST} characters, got {len(text)}", field="chain")
    if text.strip() in ("", NONE):
        return ()
    parts = text.strip().split("~")
    if len(parts) > MOST_STEPS:
        raise InputError(f"chain: at most {MOST_STEPS} steps, got {len(parts)}", field="chain")
    return tuple(_read_step(part) for part in parts)


def read_for_vectors(text: str) -> tuple[Step, ...]:
    """`read` for vectors without a run: also raises `InputError` for a step that is trained on a run's labels."""
    steps = read(text)
    if labelled := next((step for step in steps if step.kind.needs == "labels"), None):
        raise InputError(
            f"chain: '{labelled.slug}' is trained on a run's labels; it needs a run",
            field="chain",
        )
    return steps


def _read_step(text: str) -> Step:
    match = re.fullmatch(r"([A-Za-z0-9_/-]+)(?::(.*))?", text)
    if match is None:
        raise InputError(f"chain: '{text}' is not a step (a step is name:parameter=value,…)", field="chain")
    values: dict[str, Any] = {}
    for part in (match[2] or "").split(",") if match[2] else []:
        name, sign, value = part.partition("=")
        if not sign or not name:
            raise InputError(f"chain: '{part}' in '{text}' is not parameter=value", field="chain")
        if name in values:
            raise InputError(f"chain: '{name}' appears twice in '{text}'", field="chain")
        values[name] = None if value == "none" else value
    return step(match[1], **values)


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
