"""A chain of transforms as text short enough for an address, and back: `all_but_the_top:remove=2~isobn:beta=0.5`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from isoviz import methods, posthoc
from isoviz.config import input_error
from isoviz.errors import InputError, unknown_name
from isoviz.parameters import Params

LAYER: Final = "isolayer"
"""The step that is trained on labels and therefore no post-hoc transform of the catalogue."""

MOST_STEPS: Final = 8
LONGEST: Final = 1_000
NONE: Final = "none"
"""The text of the chain without steps."""

_LAYER_PARAMS: Final = ("alpha", "isotropy")
"""Parameters of IsoLayer that a step may change; the others keep the method's defaults."""


@dataclass(frozen=True)
class Step:
    """One transform with its parameters, not fitted.

    Attributes:
        slug: of `isoviz.posthoc`, or `LAYER`.
        params: complete.
    """

    slug: str
    params: Params

    @property
    def title(self) -> str:
        """Its name on screen."""
        return title(self.slug)

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters that differ from their defaults."""
        fields = type(self.params).model_fields
        return {name: value for name, value in self.params.model_dump().items() if value != fields[name].default}

    @property
    def text(self) -> str:
        """`isobn:beta=1`; parameters at their defaults are left out."""
        told = ",".join(f"{name}={_written(value)}" for name, value in self.changed.items())
        return f"{self.slug}:{told}" if told else self.slug

    @property
    def source(self) -> str:
        """The call that makes the transform, in Python."""
        told = ", ".join(f"{name}={value!r}" for name, value in self.changed.items())
        return f"{'cloud.' if self.slug == LAYER else ''}{self.slug}({told})"

    def make(self) -> posthoc.Transform:
        """The transform, not fitted; not for `LAYER`, which needs labels."""
        return posthoc.get(self.slug)(**self.params.model_dump())


def step(slug: str, **values: Any) -> Step:
    """A checked step; `InputError` names what is not allowed."""
    if slug not in slugs():
        raise unknown_name("transform", slug, slugs(), field="chain")
    kind = params_of(slug)
    allowed = parameters(slug)
    for name in values:
        if name not in allowed:
            raise unknown_name(f"parameter of '{slug}'", name, allowed, field="chain")
    try:
        return Step(slug, kind.model_validate(values))
    except ValidationError as error:
        found = input_error(error)
        raise InputError(f"{slug}: {found}", field="chain") from None


def slugs() -> list[str]:
    """What a chain may be made of."""
    return [*posthoc.catalogue(), LAYER]


def title(slug: str) -> str:
    """A transform's name on screen."""
    return methods.get(LAYER).title if slug == LAYER else posthoc.get(slug).title


def about(slug: str) -> Any:
    """The class that explains a transform: `summary`, `equation`, `paper`, `traps`."""
    return methods.get(LAYER) if slug == LAYER else posthoc.get(slug)


def params_of(slug: str) -> type[Params]:
    """The class of a transform's parameters."""
    found: type[Params] = methods.get(LAYER).Params if slug == LAYER else posthoc.get(slug).Params
    return found


def parameters(slug: str) -> list[str]:
    """The parameters that a step may set."""
    return list(_LAYER_PARAMS) if slug == LAYER else list(params_of(slug).model_fields)


def write(steps: Iterable[Step]) -> str:
    """A chain as text; `read` is the way back."""
    return "~".join(one.text for one in steps) or NONE


def read(text: str) -> tuple[Step, ...]:
    """The chain behind a text.

    Raises:
        InputError: with field `chain`; names the step, what was got and what is allowed.
    """
    if len(text) > LONGEST:
        raise InputError(f"chain: at most {LONGEST} characters, got {len(text)}", field="chain")
    if text.strip() in ("", NONE):
        return ()
    parts = text.strip().split("~")
    if len(parts) > MOST_STEPS:
        raise InputError(f"chain: at most {MOST_STEPS} steps, got {len(parts)}", field="chain")
    return tuple(_step_of(part) for part in parts)


def _step_of(text: str) -> Step:
    found = re.fullmatch(r"([a-z0-9_]+)(?::(.*))?", text)
    if found is None:
        raise InputError(f"chain: '{text}' is no step (a step is name:parameter=value,…)", field="chain")
    values: Mapping[str, Any] = {}
    for part in (found[2] or "").split(",") if found[2] else []:
        name, sign, value = part.partition("=")
        if not sign or not name:
            raise InputError(f"chain: '{part}' in '{text}' is no parameter=value", field="chain")
        if name in values:
            raise InputError(f"chain: '{name}' is given twice in '{text}'", field="chain")
        values = {**values, name: None if value == "none" else value}
    return step(found[1], **values)


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and float(f"{value:g}") == value:
        return f"{value:g}"
    return str(value)
