"""Types of option values, and options that several verbs share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from isoviz import boundary


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


def add_own(parser: argparse.ArgumentParser) -> None:
    """Options of `--task own`; their names in the namespace begin with `own.`"""
    from isoviz.runs.planning import OWN_OPTIONS
    from isoviz.tasks.protocol import HEAD_KINDS, OwnTask

    group = parser.add_argument_group("own data", "for --task own: the columns of the files, and what they are")
    for name, option in OWN_OPTIONS.items():
        options: dict[str, Any] = {"type": {"share": number, "split_seed": whole}.get(name, str), "metavar": "COLUMN"}
        if name == "kind":
            options |= {"choices": HEAD_KINDS, "metavar": "KIND"}
        elif name == "label_names":
            options |= {"nargs": "+", "metavar": "NAME"}
        elif name in ("share", "split_seed"):
            options["metavar"] = "N"
        group.add_argument(option, dest=f"own.{name}", help=OwnTask.model_fields[name].description, **options)


def add_store(parser: argparse.ArgumentParser, json: bool = True) -> None:
    """`--store` and, unless the verb prints no document, `--json`."""
    parser.add_argument(
        "--store", metavar="URL_OR_DIR", help="where runs are kept (default: $ISOVIZ_HOME, else the user's data folder)"
    )
    if json:
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
