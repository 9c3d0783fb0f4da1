"""Command lines, and what an answer to one may be."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st

from isoviz import methods, posthoc, studies, tasks
from isoviz.__main__ import build_parser, main
from isoviz.errors import LINE
from isoviz.recipes import RECIPES
from tests.fuzzing import nasty, untouched

_LONG = ("mcp", "worker")
"""Verbs that wait for input or for runs."""
_OUTPUTS = ("--store", "--out", "--save")
_OFTEN = {"train": 6, "sweep": 3, "measure": 6, "transform": 3, "list": 2}
"""How much more often than others a verb or action is drawn."""


class Reached(BaseException):
    """Every option was accepted, and the work would begin."""


@contextlib.contextmanager
def without_work() -> Iterator[None]:
    """Nothing is trained, measured by a model, computed as a study or served: that is where bad input must have ended."""

    def reached(*_: Any, **__: Any) -> Any:
        raise Reached

    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir("."))  # the app leaves for its own folder
        for place in (
            "isoviz.commands.train.execute_here",
            "isoviz.models.extract.layer_views",
            "isoviz.studies.study.ComputedStudy.run",
        ):
            stack.enter_context(patch(place, reached))
        stack.enter_context(patch.object(subprocess.Popen, "__init__", reached))
        stack.enter_context(patch.object(os, "execve", reached))  # the app becomes its server
        yield


def words(folder: Path) -> st.SearchStrategy[list[str]]:
    """Command lines over files in `folder` (see `fill`), most of them wrong in one or two places."""
    commands = [
        command for command in _commands(build_parser(), []) for _ in range(_OFTEN.get((command[0] or [""])[-1], 1))
    ]
    values = _values_of(folder)
    lines = st.sampled_from(commands).flatmap(lambda command: _line(*command, values))
    strange = st.lists(nasty.anything, max_size=4)
    surrogate = st.tuples(lines, st.sampled_from(nasty.SURROGATES)).map(lambda pair: [*pair[0], pair[1]])
    return st.one_of(*[lines] * 19, strange, surrogate).filter(lambda line: _stays_inside(line, folder))


def _commands(parser: argparse.ArgumentParser, before: list[str]) -> Iterator[tuple[list[str], list[argparse.Action]]]:
    """The words that begin each verb and action, and the options that it takes. `lessons --check` gives one line for each problem."""
    branches = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not branches:
        yield before, [action for action in parser._actions if action.dest not in ("help", "check")]
    for name, branch in ((name, one) for each in branches for name, one in each.choices.items() if name not in _LONG):
        yield from _commands(branch, [*before, name])


def _values_of(folder: Path) -> dict[str, st.SearchStrategy[str]]:
    """Values by the name of what takes them."""
    here = str(folder)
    paths = nasty.near(*(f"{here}/{name}" for name in sorted(path.name for path in folder.iterdir())))
    stores = st.one_of(
        st.just(f"{here}/store"),
        st.just(f"{here}/store"),
        paths,
        st.sampled_from(
            (
                "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///~nosuchuser/x.db", "sqlite:///\0", "mysql://x/y", "://", "x://",
                "postgresql://h:99999/db", "postgresql://h:port/db", "postgresql://[::1/db", "postgresql://127.0.0.1:1/db?bad=1",
                "postgresql://127.0.0.1:1/db", "postgresql://u:p@127.0.0.1:1/\0", "sqlite:////dev/null", f"sqlite:///{here}/points.npy",
            )
        ),
    )  # fmt: skip
    slugs = nasty.near(*tasks.catalogue(), "own", "own")
    names = [
        f"{slug}.{name}" if "+" in slug else name
        for slug in methods.catalogue()
        for name in methods.get(slug).Params.model_fields
    ]
    pairs = st.tuples(nasty.near(*names), _NUMBERS).map("=".join)
    steps = st.one_of(
        nasty.near(*posthoc.catalogue()), st.tuples(nasty.near(*posthoc.catalogue()), pairs).map(":".join)
    )
    addresses = nasty.near("https://example.org", "example.org", "127.0.0.1")
    ids = nasty.near("nothing", "1k0v9yw7bz1-53h")
    return {
        **dict.fromkeys(("data", "embeddings", "input", "fit_on", "out", "pairs", "labels", "roots", "add", "check"), paths),
        **dict.fromkeys(("vectors", "baseline", "save"), paths),
        **dict.fromkeys(("url", "host", "allow_host", "allow_origin", "allow_frame"), addresses),
        **dict.fromkeys(("id", "ids", "run", "experiment"), ids),
        **dict.fromkeys(("set", "grid"), pairs),
        **dict.fromkeys(("task", "tasks"), slugs),
        "store": stores,
        "model": nasty.near("demo/tiny-bert", "demo/tiny-bart", "run:nothing", "org/name", f"{here}/model", f"{here}/loop"),
        "method": nasty.near(*methods.catalogue(), *methods.combinations()),
        "recipe": nasty.near(*RECIPES),
        "name": nasty.near(*studies.catalogue()),
        "chain": st.one_of(st.lists(steps, max_size=3).map("~".join), nasty.anything),
        "split": nasty.near("train", "validation"),
        "roles": nasty.near("viewer", "runner"),
        "direction": nasty.near("en-ro", "ro-en"),
        "early_stopping": nasty.near("primary:1", "accuracy:2"),
        "own.text": nasty.near("text"),
        "own.label": nasty.near("label"),
    }  # fmt: skip


_NUMBERS = st.one_of(nasty.one_of(nasty.NUMBERS), nasty.anything)


def _line(
    before: list[str], actions: list[argparse.Action], values: dict[str, st.SearchStrategy[str]]
) -> st.SearchStrategy[list[str]]:
    """A command with what it needs, and up to three options."""
    needed = [_given(action, values) for action in actions if action.required]
    others = [_given(action, values) for action in actions if not action.required]
    optional = st.lists(st.one_of(*others), max_size=3) if others else st.just([])
    return st.tuples(st.just([before]), st.tuples(*needed).map(list), optional).map(
        lambda parts: [word for part in parts for given in part for word in given]
    )


def _given(action: argparse.Action, values: dict[str, st.SearchStrategy[str]]) -> st.SearchStrategy[list[str]]:
    """An option with its value; a positional argument is a value alone."""
    option = action.option_strings[-1] if action.option_strings else ""
    if action.nargs == 0:
        return st.just([option])
    value = nasty.near(*map(str, action.choices)) if action.choices else values.get(action.dest, _NUMBERS)
    if not option:
        return st.lists(value, max_size=2) if action.nargs == "*" else value.map(lambda word: [word])
    return value.map(lambda word: [option, word] if not word.startswith("-") else [f"{option}={word}"])


def _stays_inside(line: list[str], folder: Path) -> bool:
    """Whether its outputs (a store, a result) are inside `folder` or the current folder; the process may be root."""
    words = [word.partition("=")[2] if word.startswith(("--store=", "--out=", "--save=")) else word for word in line]
    for word in words:
        plain = word.split("://")[-1] if word.startswith("sqlite") else word
        if "\0" in plain or not plain.startswith(("/", ".")):
            continue
        if not Path(os.path.normpath(plain)).is_relative_to(folder) and (
            set(_OUTPUTS) & set(line) or word != words[-1]
        ):
            return False
    return not any(word.startswith((f"{option}=/", f"{option}=.")) for option in _OUTPUTS for word in line)


def check(line: list[str], folder: Path) -> str:
    """Run one command line in this process over files in `folder`; how it ended ("refused", "done", "reached").

    Raises:
        AssertionError: a traceback, an answer that is not one line of at most 300 characters, something on stdout with it, or a
            file outside `ISOVIZ_HOME` that changed although no option named it as an output.
    """
    before = untouched.snapshot(folder)
    ending = _ending(line)
    named = _values(line, "--store") + (_values(line, "--out") + _values(line, "--save") if ending != "refused" else [])
    named += [parent for path in named for parent in path.parents if folder in parent.parents]  # made for it
    changed = untouched.changes(before, untouched.snapshot(folder), named)
    assert not changed, f"changed: {', '.join(path.removeprefix(str(folder)) for path in changed)}"
    return ending


def _values(line: Sequence[str], option: str) -> list[Path]:
    words = [word for before, word in pairwise(line) if before == option]
    return [Path(os.path.abspath(word.removeprefix("sqlite:///"))) for word in words]


def _ending(line: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    try:
        with without_work(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = main(line)
            except SystemExit as error:
                code = error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    except Reached:
        return "reached"
    assert code in (0, 1, 2), f"exit code {code}"
    if code != 2:
        if "--json" in line and code == 0 and "-h" not in line and "--help" not in line:
            json.loads(out.getvalue())
        return "done"
    message = "".join(line for line in err.getvalue().splitlines(True) if not line.startswith("note: "))
    assert not out.getvalue(), f"on stdout beside an error: {out.getvalue()[:200]!r}"
    assert message.endswith("\n") and len(message.splitlines()) == 1, f"not one line: {message[:600]!r}"
    assert len(message) - 1 <= LINE, f"{len(message) - 1} characters: {message[:400]!r}"
    assert message[:-1].isprintable(), f"not printable: {message!r}"
    return "refused"
