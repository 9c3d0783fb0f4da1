"""The house rules that a tool can hold: arrows, names, sizes, and nothing of one machine in the tree."""

from __future__ import annotations

import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
ENGINE = sorted((ROOT / "isoviz").rglob("*.py"))
DASHBOARD = sorted((ROOT / "dashboard").rglob("*.py"))
PAGES = sorted((ROOT / "pages").glob("*.py"))


def test_the_guards_see_the_tree():
    assert len(ENGINE) > 40
    assert len(DASHBOARD) > 10
    assert len(PAGES) >= 6


def test_arrows_point_one_way():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_files_import_each_other_in_a_circle():
    """What the contract on siblings leaves open: a package and its own parts. Imports for types and inside functions count."""
    graph = grimp.build_graph("pages", "dashboard", "isoviz", "factory", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(error.args[1])) from None


def test_one_module_one_purpose():
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in ENGINE + DASHBOARD + PAGES}
    assert {name: lines for name, lines in long.items() if lines > 550} == {}
    assert {
        path.name: len(path.read_text().splitlines()) for path in PAGES if len(path.read_text().splitlines()) > 60
    } == {}


def test_names_say_what_a_thing_is():
    vague = re.compile(r"util|helper|manager|misc|handler")
    assert [str(path) for path in ENGINE + DASHBOARD + PAGES if vague.search(path.stem)] == []


def test_every_package_is_a_package():
    folders = {path.parent for path in ENGINE + DASHBOARD}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
