"""Combinations of methods, written `isobn+istar`: which are valid, and how their hooks combine.

A method changes the vector that the classifier reads (`transform`), adds terms to the loss (`penalties`), or trains a second
stage on a frozen encoder. Penalties on different quantities combine freely, with each other and with one change of the vector,
because their terms add up. `compose` refuses

- two methods that change the classifier's input: the second would rescale the output of the first, which is a third method that
  no paper describes;
- two methods that pull the same quantity to different targets: the sum of their penalties has its minimum at neither target.

Parameter names carry the method's slug: `istar.lam`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

from pydantic import create_model

from isoviz import parameters
from isoviz.errors import InputError
from isoviz.methods.protocol import Frozen, Method, Params, Representations, TrainingSample

if TYPE_CHECKING:
    from torch import Tensor

    from isoviz.models.hooks import HookedModel

JOIN = "+"
"""Separates the slugs of a combination."""


class Composed(Method):
    """Several methods in one run. `compose` makes the subclasses.

    Attributes:
        part_classes: the methods' classes, in the catalogue's order.
        parts: one instance of each.
    """

    part_classes: tuple[type[Method], ...] = ()

    def __init__(self, params: Params) -> None:
        super().__init__(params)
        values = params.model_dump()
        self.parts = [_built(part, own_params(part.slug, values)) for part in self.part_classes]

    def attach(self, model: HookedModel) -> None:
        """Attach every part; `state` holds their states by slug."""
        from torch import nn

        state = nn.ModuleDict()
        for part in self.parts:
            try:
                part.attach(model)
            except InputError as error:
                raise _renamed(error, part.slug) from None
            if part.state is not None:
                state[part.slug] = part.state
        self.state = state if len(state) else None

    def transform(self, reps: Representations, training: bool) -> Tensor:
        for part in self.parts:
            if changes_input(type(part)):
                return part.transform(reps, training)
        return reps.pooled

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        return {name: term for part in self.parts for name, term in part.penalties(reps).items()}

    def reads_tokens(self) -> bool:
        return any(part.reads_tokens() for part in self.parts)

    def regularises_output(self) -> bool:
        return any(part.regularises_output() for part in self.parts)

    def parameter_groups(self) -> list[dict[str, Any]]:
        return [group for part in self.parts for group in part.parameter_groups()]

    def refresh(self, sample: TrainingSample) -> None:
        for part in self.parts:
            part.refresh(sample)

    def frozen_steps(self, rows: int) -> int:
        return sum(part.frozen_steps(rows) for part in self.parts)

    def fit_frozen(self, frozen: Frozen) -> None:
        """Run the one second stage. The other parts' terms act on the encoder or its output layer and end with fine-tuning."""
        for part in self.parts:
            if part.frozen_stage:
                part.fit_frozen(frozen)


def compose(parts: Sequence[type[Method]]) -> type[Composed]:
    """The method that combines `parts`, in this order.

    Raises:
        InputError: the methods cannot be combined; the message says why.
    """
    if reason := why_not(parts):
        raise InputError(f"method: {reason}", field="method")
    fields = {
        f"{part.slug}.{name}": (field.annotation, _labelled(field, part))
        for part in parts
        for name, field in part.Params.model_fields.items()
    }
    slug = JOIN.join(part.slug for part in parts)
    return type(
        f"Composed[{slug}]",
        (Composed,),
        {
            "__doc__": f"{' and '.join(part.title for part in parts)} in one run.",
            "slug": slug,
            "title": " + ".join(part.title for part in parts),
            "summary": " ".join(part.summary for part in parts),
            "equation": r"\\".join(part.equation for part in parts if part.equation),
            "Params": create_model(f"Params[{slug}]", __base__=Params, **fields),  # type: ignore[call-overload]
            "traps": tuple(f"{part.title}: {trap}" for part in parts for trap in part.traps),
            "kinds": tuple(kind for kind in parts[0].kinds if all(kind in part.kinds for part in parts)),
            "of_rows_together": any(part.of_rows_together for part in parts),
            "frozen_stage": "".join(part.frozen_stage for part in parts),
            "part_classes": tuple(parts),
        },
    )


def why_not(parts: Sequence[type[Method]]) -> str:
    """Why these methods cannot be combined; empty if they can."""
    for part in parts:
        if part.slug == "baseline":
            return "the baseline cannot be part of a combination: it changes nothing"
    if len(parts) < 2 or len({part.slug for part in parts}) < len(parts):
        return f"a combination needs different methods (got {JOIN.join(part.slug for part in parts)})"
    inputs = [part.title for part in parts if changes_input(part)]
    if len(inputs) > 1:
        return f"{' and '.join(inputs)} each change the vector that the classifier reads; combine only one of them with penalties"
    for first, second in itertools.combinations(parts, 2):
        if first.pulls and first.pulls == second.pulls:
            return f"{first.title} and {second.title} pull {first.pulls} to different targets; choose one of them"
    if not any(all(kind in part.kinds for part in parts) for kind in parts[0].kinds):
        return f"{' and '.join(part.title for part in parts)} have no task kind in common"
    return ""


def changes_input(method: type[Method]) -> bool:
    """Whether the method changes the vector that the classifier reads."""
    return method.transform is not Method.transform


def own_params(slug: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of one part, without the slug in front."""
    prefix = f"{slug}."
    return {name.removeprefix(prefix): value for name, value in values.items() if name.startswith(prefix)}


def _built(part: type[Method], values: Mapping[str, Any]) -> Method:
    try:
        return part(part.Params(**values))
    except InputError as error:
        raise _renamed(error, part.slug) from None


def _renamed(error: InputError, slug: str) -> InputError:
    """The same error with the field name that the combination uses."""
    field = error.field
    if field and field.startswith("params."):
        field = f"params.{slug}.{field.removeprefix('params.')}"
    return type(error)(str(error), field=field, advice=error.advice)


def _labelled(field: Any, part: type[Method]) -> Any:
    """The field as the combination shows it: with its method's title."""
    labelled = copy(field)
    leading = field is next(iter(part.Params.model_fields.values()))
    labelled.json_schema_extra = {**parameters.extra(field), "leading": leading}
    labelled.title = f"{part.title}: {str(field.title)[:1].lower()}{str(field.title)[1:]}"
    return labelled
