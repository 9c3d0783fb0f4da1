"""Command lines, and what an answer to one may be."""

from __future__ import annotations

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
from isoviz.__main__ import main
from isoviz.errors import LINE
from isoviz.recipes import RECIPES
from isoviz.runs.planning import OPTIONS, OWN_OPTIONS
from isoviz.studies.protocol import ComputedStudy
from tests.fuzzing import nasty, untouched

_CHOICES = {
    "--precision": ("auto", "no", "bf16", "fp16"),
    "--schedule": ("constant", "linear", "polynomial"),
    "--select": ("last", "best"),
    "--batching": ("bucketed", "shuffled"),
    "--early-stopping": ("primary:1", "accuracy:2"),
    "--direction": ("en-ro", "ro-en"),
    "--kind": ("classification", "regression", "span", "seq2seq"),
    "--prefix": ("a: | b:",),
}
_FLAGS = ("--allow-random", "--allow-unknown")


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
            "isoviz.commands.train.carry_out",
            "isoviz.models.extract.layer_views",
        ):
            stack.enter_context(patch(place, reached))
        for study in studies.catalogue().values():
            if issubclass(study, ComputedStudy):  # the others train, which is stopped above
                stack.enter_context(patch.object(study, "compute", reached))
        stack.enter_context(patch.object(subprocess.Popen, "__init__", reached))
        stack.enter_context(patch.object(os, "execve", reached))  # the app becomes its server
        yield


def words(folder: Path) -> st.SearchStrategy[list[str]]:
    """Command lines over files in `folder` (see `fill`), most of them wrong in one or two places."""
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
    models = nasty.near("demo/tiny-bert", "demo/tiny-bart", "run:nothing", "org/name", f"{here}/model", f"{here}/loop")
    slugs = nasty.near(*tasks.catalogue(), "own")
    own = [
        _option(option, nasty.near(*_CHOICES.get(option, ("text", "label", "0.2", "1"))))
        for option in OWN_OPTIONS.values()
    ]
    numbers = st.one_of(nasty.one_of(nasty.NUMBERS), nasty.anything)
    settings = [
        _option(option, nasty.near(*_CHOICES[option]) if option in _CHOICES else numbers)
        for option in OPTIONS.values()
        if option not in _FLAGS
    ]
    names = [
        f"{slug}.{name}" if "+" in slug else name
        for slug in methods.catalogue()
        for name in methods.get(slug).Params.model_fields
    ]
    pairs = st.tuples(nasty.near(*names), numbers).map(lambda pair: f"{pair[0]}={pair[1]}")
    rows = [
        _option("--model", models), _option("--task", slugs), _option("--task", st.just("own")), _option("--data", paths), *own,
    ]  # fmt: skip
    training = [
        *rows, _option("--method", nasty.near(*methods.catalogue(), *methods.combinations())), _option("--set", pairs),
        _option("--recipe", nasty.near(*RECIPES)), st.lists(numbers, min_size=1, max_size=3).map(_seeds), *settings,
        _option("--store", stores),
    ]  # fmt: skip
    measuring = [
        *rows, _option("--split", nasty.near("train", "validation")), _option("--layer", numbers), _option("--max-eval", numbers),
        _option("--pooling", nasty.near("cls", "mean", "head")), _option("--max-length", numbers), _option("--batch-size", numbers),
        _option("--direction", nasty.near("en-ro")), _option("--embeddings", paths), st.just(["--as-weights"]),
    ]  # fmt: skip
    steps = st.lists(
        st.one_of(nasty.near(*posthoc.catalogue()), st.tuples(nasty.near(*posthoc.catalogue()), pairs).map(":".join)),
        max_size=3,
    )
    chain = st.one_of(steps.map("~".join), nasty.anything)
    ids = nasty.near("nothing", "1k0v9yw7bz1-53h")
    store = _option("--store", stores)
    json_too = st.sampled_from(([], ["--json"]))
    grids = st.lists(pairs.map(lambda pair: ["--grid", pair]), min_size=1, max_size=2).map(_joined)
    transforming = st.tuples(
        _option("--chain", chain),
        _option("--in", paths),
        _option("--out", paths),
        st.one_of(st.just([]), _option("--fit-on", paths)),
    ).map(_joined)
    one_id = st.sampled_from(("show", "stop", "resume", "delete"))
    runs = st.one_of(
        st.tuples(one_id, ids).map(list),
        st.just(["list"]),
        st.lists(ids, max_size=3).map(lambda all_: ["export", *all_]),
    )
    study = st.tuples(
        nasty.near(*studies.catalogue()),
        _some([_option("--scale", nasty.near("quick", "full")), _option("--out", paths), _option("--model", models),
               _option("--tasks", slugs), _option("--data", st.tuples(slugs, paths).map("=".join))]),
    ).map(lambda pair: ["run", pair[0], *pair[1]])  # fmt: skip
    door = [
        _option(name, nasty.near("https://example.org", "example.org", "127.0.0.1"))
        for name in ("--url", "--allow-host", "--allow-origin", "--allow-frame", "--host")
    ]
    app = _some([_option("--port", numbers), *door, store])
    links = st.tuples(
        st.sampled_from((["show"], ["renew"])),
        st.lists(nasty.near("viewer", "runner"), max_size=2),
        _some([door[0], store]),
    ).map(_joined)
    lines = st.one_of(
        st.tuples(st.just(["train"]), _some(training), json_too),
        st.tuples(st.just(["train"]), _some(training), json_too),
        st.tuples(st.just(["sweep"]), grids, _some(training), json_too),
        st.tuples(st.just(["measure"]), _some(measuring), json_too),
        st.tuples(st.just(["measure"]), _some(measuring), json_too),
        st.tuples(st.just(["transform"]), transforming, json_too),
        st.tuples(st.just(["runs"]), runs, store, json_too),
        st.tuples(st.just(["study"]), st.one_of(study, st.just(["list"])), json_too),
        st.tuples(st.just(["app"]), app),
        st.tuples(st.just(["links"]), links, json_too),
        st.tuples(st.lists(nasty.anything, max_size=4)),
    ).map(lambda parts: [word for part in parts for word in part])
    surrogate = st.tuples(lines, st.sampled_from(nasty.SURROGATES)).map(lambda pair: [*pair[0], pair[1]])
    return st.one_of(*[lines] * 19, surrogate).filter(lambda line: _stays_inside(line, folder))


def _stays_inside(line: list[str], folder: Path) -> bool:
    """Whether its outputs (a store, a result) are inside `folder` or the current folder; the process may be root."""
    words = [word.partition("=")[2] if word.startswith(("--store=", "--out=")) else word for word in line]
    for word in words:
        plain = word.split("://")[-1] if word.startswith("sqlite") else word
        if "\0" in plain or not plain.startswith(("/", ".")):
            continue
        if not Path(os.path.normpath(plain)).is_relative_to(folder) and (
            "--store" in line or "--out" in line or word != words[-1]
        ):
            return False
    return not any(word.startswith(("--store=/", "--store=.", "--out=/", "--out=.")) for word in line)


def _option(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return values.map(lambda value: [name, value] if not value.startswith("-") else [f"{name}={value}"])


def _joined(parts: Sequence[list[str]]) -> list[str]:
    return [word for part in parts for word in part]


def _seeds(numbers: Sequence[str]) -> list[str]:
    return ["--seeds", *numbers]


def _some(options: list[st.SearchStrategy[list[str]]]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.one_of(*options), max_size=4).map(lambda chosen: [word for part in chosen for word in part])


def check(line: list[str], folder: Path) -> str:
    """Run one command line in this process over files in `folder`; how it ended ("refused", "done", "reached").

    Raises:
        AssertionError: a traceback, an answer that is not one line of at most 300 characters, something on stdout with it, or a
            file outside `ISOVIZ_HOME` that changed although no option named it as an output.
    """
    before = untouched.snapshot(folder)
    ending = _ending(line)
    named = _values(line, "--store") + (_values(line, "--out") if ending != "refused" else [])
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
    message = err.getvalue()
    assert not out.getvalue(), f"on stdout beside an error: {out.getvalue()[:200]!r}"
    assert message.endswith("\n") and len(message.splitlines()) == 1, f"not one line: {message[:600]!r}"
    assert len(message) - 1 <= LINE, f"{len(message) - 1} characters: {message[:400]!r}"
    assert message[:-1].isprintable(), f"not printable: {message!r}"
    return "refused"
