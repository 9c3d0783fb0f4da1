"""What CONTRIBUTING promises: a metric, transform, method, task, study, read-out, format, store and operation are one file each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lab_package import write_package
from tests.test_catalogues import METHOD, METRIC, TASK, TRANSFORM

STUDY = """
    from isoviz.studies.result import Table
    from isoviz.studies.study import Computed, ComputedStudy


    def compute(scale, progress, inputs):
        table = Table(title="Numbers", header=["n"], rows=[[7]])
        return Computed("Numbers of the lab", {}, ["numpy"], [], [table])


    STUDIES = ComputedStudy(
        slug="istar-lab", title="What does the lab find?", summary="Seven.", open_points=(), claims=(),
        quick="seconds", full="seconds", compute=compute,
    )
"""
READ_OUT = """
    import numpy as np

    from isoviz.readouts import Annotations, ReadOut  # the package that makes the catalogue
    from isoviz.statistics.paired_bootstrap import Mean


    def length(image, annotations: Annotations) -> Mean:
        return Mean(np.linalg.norm(image.points, axis=1))


    READ_OUTS = ReadOut("lab_norm", "Length", "nothing", "rows", "Mean length of the vectors.", aim="", compute=length)
"""
FORMAT = """
    import numpy as np

    from isoviz.tables.protocol import Format, starts_with


    def read(path, name):
        return np.frombuffer(path.read_bytes()[4:], "<f4").reshape(-1, 3)


    FORMATS = Format("lab_cube", "a cube of the lab", (".cube",), starts_with(b"CUBE"), array=read, vectors="rows of three")
"""
OPERATION = '''
    from isoviz.operations.table import Operation, Operations


    def lab_count(self: Operations, status: str = "finished") -> dict[str, int]:
        """How many runs have a status."""
        return {status: self.store.counts()[status]}


    OPERATIONS = Operation(lab_count)
'''
STORE = """
    import pyarrow as pa

    from isoviz.tables.stores.protocol import Store


    class LabStore(Store):
        slug, title, packages, extra, examples = "lab", "Lab", (), "lab", ("lab:FILE",)
        holds, samples, local = "table", "as they come", "file"

        def __init__(self, address, path, closing):
            self.rows = [[float(number) for number in line.split()] for line in path.read_text().splitlines()]

        def names(self):
            return ["only"]

        def vectors(self, name):
            return ["vector"]

        def count(self, name):
            return len(self.rows)

        def keys(self, name):
            return range(len(self.rows))

        def take(self, name, column, keys):
            return pa.table({"vector": [self.rows[key] for key in keys]})
"""
FILES = {
    "isoviz.methods": METHOD,
    "isoviz.transforms": TRANSFORM,
    "isoviz.tasks": TASK,
    "isoviz.metrics": METRIC,
    "isoviz.studies": STUDY,
    "isoviz.readouts": READ_OUT,
    "isoviz.formats": FORMAT,
    "isoviz.stores": STORE,
    "isoviz.operations": OPERATION,
}
SCRIPT = """
import asyncio, contextlib, io, json, sys
import numpy as np
from isoviz import methods, readouts, studies
from isoviz.__main__ import main
from isoviz.operations.access.service import of_command_line
from isoviz.config import RunConfig
from isoviz.operations.table import operations
from isoviz.readouts import Annotations
from isoviz.runs.store import Store
from isoviz.whatif import chains

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert main([*words, "--json"]) == 0
    return json.loads(out.getvalue())

points = np.arange(60.0).reshape(12, 5)
np.save("points.npy", points)
open("points.cube", "wb").write(b"CUBE" + points.astype("<f4").tobytes())
np.savetxt("points.txt", points)
store = Store("store")
table = {one.name: one for one in operations(store, of_command_line(store))}
call = lambda name, **arguments: asyncio.run(table[name].run(arguments))
slugs = lambda kind: [one["name" if "name" in one else "slug"] for one in call("catalogue", kind=kind)[kind]]
(comparison,) = readouts.compare(points, points / 2, Annotations(), ["lab_norm"])
json.dump({
    "catalogues": {kind: slugs(kind) for kind in ("methods", "measures", "transforms", "tasks", "studies")},
    "run": RunConfig.checked(method="lab_shrink", task="lab/mood", data="points.npy").method,
    "combined": methods.get("lab_shrink+istar").title,
    "measured": printed("measure", "--embeddings", "points.npy"),
    "format": printed("measure", "--embeddings", "points.cube")["cloud"],
    "stored": printed("measure", "--embeddings", "lab:points.txt", "--sample", "7")["n"],
    "transformed": printed("transform", "--chain", "lab_halve", "--in", "points.npy", "--out", "half.npy"),
    "step": chains.write(chains.read("lab_halve")),
    "half": np.load("half.npy").tolist() == (points / 2).tolist(),
    "study": studies.get("istar-lab").run("quick", lambda *_: None).tables[0].rows,
    "listed": [one["slug"] for one in printed("study", "list")["studies"]],
    "readout": [comparison.before, comparison.after],
    "applicable": [one.slug for one in readouts.applicable(Annotations())],
    "operation": [table["lab_count"].description, call("lab_count")],
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a new process finds of a package in a temporary folder, with one file for each kind of item."""
    folder = tmp_path_factory.mktemp("lab")
    modules = {group.removeprefix("isoviz."): source for group, source in FILES.items()}
    write_package(folder / "site", "lab", modules, {f"isoviz.{name}": {name: f"lab.{name}"} for name in modules})
    variables = {"PYTHONPATH": str(folder / "site"), "ISOVIZ_HOME": str(folder), "ISOVIZ_EXAMPLES": "off"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Ignored" not in done.stderr, done.stderr
    return dict(json.loads(done.stdout))


def test_catalogues_list_what_one_file_adds(found: dict[str, Any]) -> None:
    added = {"methods": "lab_shrink", "measures": "lab_length", "transforms": "lab_halve", "tasks": "lab/mood"}
    for kind, slug in {**added, "studies": "istar-lab"}.items():
        assert slug in found["catalogues"][kind]


def test_each_item_works(found: dict[str, Any]) -> None:
    assert found["run"] == "lab_shrink" and "Shrink" in found["combined"]
    assert found["measured"]["lab_length"] > 0
    assert found["format"]["name"].startswith("points.cube")
    assert found["stored"] == 7
    assert found["half"] and found["transformed"] and found["step"] == "lab_halve"
    assert found["study"] == [[7]] and "istar-lab" in found["listed"]
    before, after = found["readout"]
    assert before > 0 and after == pytest.approx(before)  # an image has one scale
    assert "lab_norm" in found["applicable"]
    assert found["operation"] == ["How many runs have a status.", {"finished": 0}]


def test_the_guide_names_each_group() -> None:
    guide = Path(__file__).resolve().parent.parent.joinpath("CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [group for group in FILES if f"`{group}`" not in guide] == []
