"""Types of option values, and options that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError

from isoviz import boundary
from isoviz.errors import InputError, input_error
from isoviz.parameters import extra

if TYPE_CHECKING:
    from isoviz.tasks.protocol import OwnTask

Request = TypeVar("Request", bound=BaseModel)


def whole(text: str) -> int:
    """A whole number."""
    return _checked(boundary.whole_number, text)


def number(text: str) -> float:
    """A finite number."""
    return _checked(boundary.number, text)


def port(text: str) -> int:
    """A TCP port."""
    value = whole(text)
    if not 1 <= value <= 65535:
        raise argparse.ArgumentTypeError(f"expected 1 to 65535, got {value}")
    return value


def _checked(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_fields(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    model: type[BaseModel],
    options: Mapping[str, str] | None = None,
    *,
    prefix: str = "",
    text: str = "TEXT",
    section_of: Callable[[str], str] = lambda name: "",
) -> None:
    """An option for each field of a request that text can give, with its type and description. `given` reads them.

    Args:
        options: field → option, for some fields only, or with other names.
        prefix: of the names in the namespace.
        text: what help calls a text.
        section_of: the heading of a field's option; empty for none.
    """
    groups: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kinds = {get_origin(kind) or kind for kind in (field.annotation, *get_args(field.annotation))}
        if (options is not None and name not in options) or kinds.isdisjoint((bool, int, float, str, Literal, tuple)):
            continue
        option = f"--{name.replace('_', '-')}" if options is None else options[name]
        section = section_of(name)
        group = groups.setdefault(section, parser.add_argument_group(section)) if section else parser
        shared: dict[str, Any] = {"dest": prefix + name, "default": None}
        if field.annotation is bool:
            group.add_argument(option, action="store_true", help=field.description, **shared)
            continue
        choices = next((get_args(kind) for kind in _alternatives(field.annotation) if get_origin(kind) is Literal), ())
        default = extra(field).get("shown_default", None if field.is_required() else field.default)
        notes = [f"one of {', '.join(choices)}"] if choices else []
        notes += [f"default: {default}"] if default not in (None, ()) else []
        read, metavar = (whole, "N") if int in kinds else (number, "X") if float in kinds else (str, text)
        group.add_argument(
            option,
            type=read,
            nargs="+" if tuple in kinds else None,
            metavar="NAME" if choices or tuple in kinds else extra(field).get("metavar", metavar),
            help=f"{field.description} ({'; '.join(notes)})" if notes else field.description,
            **shared,
        )


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return (annotation,) if get_origin(annotation) is Literal else get_args(annotation)


def given(model: type[Request], options: argparse.Namespace, **more: Any) -> Request:
    """The request in the options that were given. Raises `InputError`."""
    values = {name: getattr(options, name, None) for name in model.model_fields} | more
    try:
        return model(**{name: value for name, value in values.items() if value is not None})
    except ValidationError as error:
        raise input_error(error) from None


def add_own(parser: argparse.ArgumentParser) -> None:
    """Options of `--task own`; their names in the namespace begin with `own.`"""
    from isoviz.runs.planning import OWN_OPTIONS
    from isoviz.tasks.protocol import OwnTask

    group = parser.add_argument_group("own data", "for --task own: the columns of the files, and what they are")
    add_fields(group, OwnTask, OWN_OPTIONS, prefix="own.", text="COLUMN")


def own_columns(options: argparse.Namespace) -> OwnTask | None:
    """The columns of `--task own`. Raises `InputError` if the task is another one, or if a required column is missing."""
    from isoviz.runs.planning import OWN_OPTIONS
    from isoviz.tasks.protocol import OWN, OwnTask

    values = {name: getattr(options, f"own.{name}", None) for name in OWN_OPTIONS}
    values = {name: value for name, value in values.items() if value is not None}
    if options.task != OWN:
        got = "" if options.task is None else f" (got --task {options.task})"
        for name in values:
            raise InputError(f"own.{name}: is for --task {OWN}{got}", field=f"own.{name}")
        return None
    for name in ("text", "label"):
        if name not in values:
            raise InputError(f"own.{name}: --task {OWN} needs the column's name", field=f"own.{name}")
    return OwnTask.checked(**values)


def add_store(parser: argparse.ArgumentParser, json: bool = True) -> None:
    """`--store` and, unless the verb prints no document, `--json`."""
    parser.add_argument(
        "--store", metavar="URL_OR_DIR", help="where runs are kept (default: $ISOVIZ_HOME, else the user's data folder)"
    )
    if json:
        add_json(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
