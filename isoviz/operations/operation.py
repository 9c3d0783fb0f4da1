"""An operation is a typed function: its annotations and docstring are its arguments, checks and help for every caller."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from isoviz.errors import input_error

Request = TypeVar("Request", bound=BaseModel)

STRICT: Final = ConfigDict(extra="forbid", allow_inf_nan=False)


def argument(
    description: str, metavar: str | None = None, *, ge: float | None = None, le: float | None = None, **declared: Any
) -> Any:
    """The declaration of an argument, for `Annotated`.

    Args:
        metavar: what the command line's help calls its value.
        ge, le: the lowest and the highest value of a number.
        declared: for the command line: `option` (another name), `positional`, `hidden`, `section` (its heading), `nargs`
            of a list, and `append` (the option is repeated).
    """
    return Field(
        description=description, ge=ge, le=le, json_schema_extra=declared | ({"metavar": metavar} if metavar else {})
    )


By = Annotated[str, argument("the factor to compare: method (with its parameters), a setting, or a parameter")]
ComparedMetric = Annotated[
    str | None, argument("a metric of the task, or a measure of isotropy (default: the task's primary metric)")
]
Baseline = Annotated[
    str | None,
    argument("the setting that the others are compared with (default: the method baseline, else the first)"),
]
Alpha = Annotated[float, argument("familywise error rate of the table")]
"""Choices of a comparison of runs."""


def checked(model: type[Request], arguments: Mapping[str, Any]) -> Request:
    """A request with these arguments. Raises `InputError` for the first that is unknown, missing or not allowed."""
    try:
        return model.model_validate(arguments)
    except ValidationError as error:
        raise input_error(error, depth=3) from None


def arguments_of(call: Callable[..., Any]) -> type[BaseModel]:
    """The model of a function's arguments, which refuses unknown names; that of its argument `request` if it has one."""
    hints = get_type_hints(call, include_extras=True)
    if "request" in hints:
        model: type[BaseModel] = hints["request"]
        return model
    fields: dict[str, Any] = {
        name: (hints[name], ... if one.default is one.empty else one.default)
        for name, one in inspect.signature(call).parameters.items()
        if name != "self"
    }
    return create_model(call.__name__, __config__=STRICT, **fields)


def keywords(call: Callable[..., Any], request: BaseModel) -> dict[str, Any]:
    """The keyword arguments of a call with a checked request of `arguments_of`."""
    if "request" in inspect.signature(call).parameters:
        return {"request": request}
    return {name: getattr(request, name) for name in type(request).model_fields}
