"""Records what a release promises, at its release: `python -m factory.record_release`.

Writes `tests/releases/VERSION/`: `store.db.gz`, a store with trained, stopped and waiting runs, and `promises.json`, the public names,
the options of every verb, and what commands print of that store as JSON. `tests/test_releases.py` holds later versions to each.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isoviz import __version__, methods, metrics, posthoc, readouts, studies, tasks
from isoviz.__main__ import build_parser, main

RELEASES = Path(__file__).parents[1] / "tests" / "releases"
TRAIN = "train --task demo/acceptability --max-train 32 --max-eval 16 --epochs 1 --max-length 16 --threads 1"


def answer(line: str, store: Path) -> Any:
    """The JSON document of a command on a store."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = main([*line.split(), "--store", str(store), "--json"])
    assert code == 0, line
    return json.loads(printed.getvalue())


def options(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each verb with its options."""
    own: list[str] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from options(below, f"{verb} {name}".strip())
        else:
            own += action.option_strings or [action.dest]
    yield verb, sorted(own)


def names() -> dict[str, list[str]]:
    """The public names of each package that has any: what it exports, and the slugs of its catalogue."""
    functions = metrics._functions().keys() | metrics.MODULE_OF.keys()
    exported = {package.__name__: [*package.__all__] for package in (methods, posthoc, readouts, tasks, studies)}
    slugs = {f"{one.__name__}.catalogue": [*one.catalogue()] for one in (methods, metrics, posthoc, tasks, studies)}
    found = {"isoviz.metrics": functions, "isoviz.readouts.CATALOGUE": readouts.CATALOGUE, **exported, **slugs}
    return {package: sorted(those) for package, those in found.items()}


def record(folder: Path) -> None:
    """Write the record of this version."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["ISOVIZ_HOME"] = home
        store = Path(home)
        for line in (
            "--method baseline --seeds 0 1",
            "--method isobn --set beta=0.5 --seeds 0 1",
            "--seeds 7 8 --queue",
        ):
            answer(f"{TRAIN} {line}", store)
        waiting, stopped, *trained = (run["id"] for run in answer("runs list", store)["runs"])
        answer(f"runs stop {stopped}", store)
        lines = ["runs list", f"runs show {trained[0]}", f"runs show {stopped}", f"compare {' '.join(trained)}"]
        documents = {line: answer(line, store) for line in lines}
        with contextlib.closing(sqlite3.connect(store / "isoviz.db")) as database:
            database.execute("VACUUM INTO ?", [str(store / "packed.db")])
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "store.db.gz").write_bytes(gzip.compress((store / "packed.db").read_bytes(), mtime=0))
    promises = {"names": names(), "options": dict(options(build_parser())), "documents": documents, "waiting": waiting}
    (folder / "promises.json").write_text(json.dumps(promises, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    record(RELEASES / __version__)
    sys.exit(print(f"wrote {RELEASES / __version__}"))
