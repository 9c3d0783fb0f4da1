"""The house rules that a tool can hold: arrows, names, sizes, and nothing of one machine in the tree."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

from isoviz.jobs import queue
from isoviz.runs.store import Store
from isoviz.tasks.protocol import HEAD_KINDS

ROOT = Path(__file__).resolve().parent.parent
ENGINE = sorted((ROOT / "isoviz").rglob("*.py"))
DASHBOARD = sorted((ROOT / "dashboard").rglob("*.py"))
PAGES = sorted((ROOT / "pages").glob("*.py"))


def test_arrows_point_one_way():
    linter = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([linter, "--no-cache"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_no_files_import_each_other_in_a_circle():
    """Cycles that the sibling contract does not cover: a package and its own modules. Imports for types and inside functions count."""
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


def test_the_reading_list_is_short():
    listed = (ROOT / "CONTRIBUTING.md").read_text().split("## Ten files")[1].split("## ")[0]
    files = re.findall(r"`((?:isoviz|dashboard|pages)/[\w/]+\.py)`", listed)
    assert len(files) >= 10
    assert [name for name in files if len((ROOT / name).read_text().splitlines()) > 400] == []


def test_what_a_head_kind_has_of_its_own_is_in_its_object():
    """No table keyed by kinds beside `isoviz.tasks.kinds`: a new kind would have to find it."""
    tables = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ENGINE + DASHBOARD + PAGES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Dict)
        and len({key.value for key in node.keys if isinstance(key, ast.Constant)} & set(HEAD_KINDS)) > 1
    ]
    assert tables == []


ROOMS_OF = {
    "argparse": {"__main__", "commands", "jobs"},
    "subprocess": {"jobs", "runs", "commands", "devices"},
    "multiprocessing": set(),
    "socket": {"commands", "operations", "server"},
    "pyarrow.csv": {"tables"},
    "csv": {"tables", "studies"},
}
"""Where an idea lives that must not grow a second time: options, processes, addresses, readers of people's files."""


def test_each_idea_has_its_rooms():
    found: dict[str, set[str]] = {name: set() for name in ROOMS_OF}
    for path in ENGINE + DASHBOARD:
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            imported += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            for name in {*imported, *(each.split(".")[0] for each in imported)} & found.keys():
                found[name].add(path.relative_to(ROOT).with_suffix("").parts[1])
    assert found == ROOMS_OF


def test_every_package_is_a_package():
    folders = {path.parent for path in ENGINE + DASHBOARD}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


STORE_READS = {
    "existing",
    *(
        "close",
        "counts",
        "disk_use",
        "events",
        "events_of_kind",
        "facets",
        "folder_of",
        "get",
        "list",
        "newest_of_kind",
    ),
    *("path_of", "revision", "summaries", "summary", "url"),
}
QUEUE_READS = {"look", "requester", "under_way", "content_key", "dispatch", "processes"}


@functools.cache
def store_writes() -> set[str]:
    """Store methods not known to be reads, so that a new method counts as a write."""
    return {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if name[0] != "_"} - STORE_READS


@functools.cache
def queue_writes() -> set[str]:
    public = {name for name, value in vars(queue).items() if inspect.isfunction(value) and name[0] != "_"}
    return {name for name in public if vars(queue)[name].__module__ == queue.__name__} - QUEUE_READS


def writes_past_the_service(source: str) -> list[str]:
    """What of a page's source changes runs, jobs or uploads without asking `isoviz.operations.access.service`."""
    writes = []
    aliases: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assign) and ast.unparse(node.value).endswith("store()"):
            aliases |= {ast.unparse(target) for target in node.targets}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if node.attr in store_writes() and (re.search(r"\b_?store(\(\))?$", owner) or owner in aliases):
                writes.append(f"{owner}.{node.attr}")
            if owner in ("queue", "jobs") and node.attr in {*queue_writes(), "start", "stop", "obtain"}:
                writes.append(f"{owner}.{node.attr}")
            if owner == "uploads" and node.attr == "save":
                writes.append(f"{owner}.{node.attr}")
        if isinstance(node, ast.ImportFrom):
            module, names = node.module or "", {name.name for name in node.names}
            refused = {
                "isoviz.jobs.queue": queue_writes(),
                "isoviz.exploring.jobs": {"start", "obtain"},
                "isoviz.operations.access.uploads": {"save"},
            }.get(module, set())
            writes += [f"{module}.{name}" for name in names & refused]
    return writes


def test_pages_write_through_the_service():
    """Roles, read-only mode and quotas hold on every page, because pages act only through the service."""
    assert {"create", "delete", "rename", "tag", "note", "request_stop", "requeue", "append", "claim"} <= store_writes()
    assert {"start", "retry", "stop", "release", "sweep", "close"} == queue_writes()
    past = {str(path.relative_to(ROOT)): writes_past_the_service(path.read_text()) for path in DASHBOARD + PAGES}
    assert {name: writes for name, writes in past.items() if writes} == {}


def test_scripts_start_without_their_words():
    """argparse of Python 3.11 refuses an empty list of words that have `choices`."""
    refusing = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for folder in ("isoviz", "factory", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"
        if {"nargs", "choices"} <= {given.arg for given in call.keywords}
        if "'*'" in (ast.unparse(given.value) for given in call.keywords if given.arg == "nargs")
    ]
    assert refusing == []
