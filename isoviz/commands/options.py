"""Options of the command line, from the annotations of the functions that carry out its verbs."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from isoviz import input_validation
from isoviz.commands.output import Answer, print_json, print_notes
from isoviz.errors import InputError
from isoviz.operations.operation import argument, arguments_of, checked, keywords
from isoviz.parameters import extra

if TYPE_CHECKING:
    from isoviz.tasks.protocol import OwnTask

StoreOption = Annotated[
    str | None, argument("where runs are kept (default: $ISOVIZ_HOME, else the user's data folder)", "URL_OR_DIR")
]
Quiet = Annotated[bool, argument("one JSON document on stdout", option="--json")]
"""For a verb that prints nothing else then while it works. All that give an `Answer` have `--json`."""
Column = Annotated[
    str | None,
    argument(
        "the vectors in a file: a column of lists, dim_* or names with commas for one column per dimension, or an array"
    ),
]
SkipBadRows = Annotated[bool, argument("leave out rows of the file without a readable vector")]
Call = Callable[..., Answer | int]


def file_of_vectors() -> str:
    """Help of an option that names vectors. The catalogue of formats imports numpy, so other verbs do not wait for it."""
    from isoviz.tables import catalogue

    return f"vectors: {catalogue.described('array', 'table', 'vectors')}; text also as .gz"


def add_verb(parser: argparse.ArgumentParser, call: Call) -> None:
    """The options of a function, and `execute`, which calls it with them and gives the exit code."""
    model = arguments_of(call)
    add_fields(parser, model, text="NAME")
    if call.__annotations__["return"] == "Answer" and "quiet" not in model.model_fields:
        parser.add_argument("--json", action="store_true", dest="quiet", help="one JSON document on stdout")
    parser.set_defaults(execute=functools.partial(_execute, call), request_type=model)


def request_of(options: argparse.Namespace) -> Any:
    """The checked request of a parsed command line, which knows what was given (`model_fields_set`)."""
    model: type[BaseModel] = options.request_type
    given = {name: getattr(options, name, None) for name in model.model_fields}
    if "own" in given:
        given["own"] = _own_columns(options)
    return checked(model, {name: value for name, value in given.items() if value is not None})


def _execute(call: Call, options: argparse.Namespace) -> int:
    answer = call(**keywords(call, request_of(options)))
    if not isinstance(answer, Answer):
        return int(answer)
    if options.quiet:
        print_json(answer.document, answer.notes)
    else:
        answer.text() if callable(answer.text) else print(answer.text)
        print_notes(answer.notes)
    return answer.code


def add_fields(
    parser: argparse.ArgumentParser | argparse._ArgumentGroup,
    model: type[BaseModel],
    *,
    prefix: str = "",
    text: str = "TEXT",
) -> None:
    """An option for each field of a request that text can give, with its type and description.

    Args:
        prefix: of the names in the namespace; these options may be left out.
        text: what help calls a text.
    """
    groups: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name == "own":
            _add_own(parser)
        types = _types(field.annotation)
        kinds = {get_origin(one) or one for one in types}
        if kinds.isdisjoint((bool, int, float, str, Literal)):
            continue
        about = extra(field)
        section = about.get("section")
        group = groups.setdefault(section, parser.add_argument_group(section)) if section else parser
        option = about.get("option", f"--{name.replace('_', '-')}")
        choices = next((get_args(one) for one in types if get_origin(one) is Literal), ())
        default = about.get("shown_default", None if field.is_required() else field.default)
        notes = [f"one of {', '.join(choices)}"] if choices and "positional" not in about else []
        notes += [f"default: {default}"] if default not in (None, (), "") and default is not False else []
        description = f"{field.description} ({'; '.join(notes)})" if notes else field.description
        shared: dict[str, Any] = {"help": argparse.SUPPRESS if "hidden" in about else description}
        if field.annotation is bool:
            group.add_argument(option, action="store_true", default=None, dest=prefix + name, **shared)
            continue
        shared["type"], metavar = (whole, "N") if int in kinds else (number, "X") if float in kinds else (str, text)
        several = not kinds.isdisjoint((list, tuple))
        shared["metavar"] = about.get("metavar", "NAME" if choices or several else metavar)
        if choices and "positional" in about:
            shared |= {"choices": choices, "metavar": None}
        if several:
            shared |= {"action": "append"} if "append" in about else {"nargs": about.get("nargs", "+")}
        elif "nargs" in about:
            shared["nargs"] = about["nargs"]
        if "positional" in about:
            group.add_argument(name, **shared)
        else:
            required = field.is_required() and not prefix
            group.add_argument(option, dest=prefix + name, default=None, required=required, **shared)


def _types(annotation: Any) -> list[Any]:
    parts = () if get_origin(annotation) is Literal else get_args(annotation)
    return [annotation, *(inner for part in parts for inner in _types(part))]


def whole(text: str) -> int:
    """A whole number."""
    return _read(input_validation.whole_number, text)


def number(text: str) -> float:
    """A finite number."""
    return _read(input_validation.number, text)


def _read(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_own(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Options of `--task own`; their names in the namespace begin with `own.`"""
    from isoviz.tasks.protocol import OwnTask

    group = parser.add_argument_group("own data", "for --task own: the columns of the files, and what they are")
    add_fields(group, OwnTask, prefix="own.", text="COLUMN")


def _own_columns(options: argparse.Namespace) -> OwnTask | None:
    """The columns of `--task own`. Raises `InputError` if the task is another one, or if a required column is missing."""
    from isoviz.tasks.protocol import OWN, OwnTask

    values = {name: getattr(options, f"own.{name}", None) for name in OwnTask.model_fields}
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
