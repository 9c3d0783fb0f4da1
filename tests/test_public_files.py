"""The files by which others find, cite and contribute to the project are valid, and name this version."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import isoviz
from isoviz.errors import DISTRIBUTION

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-workflows", sorted(ROOT.glob(".github/workflows/*.yml"))),
        ("github-issue-forms", sorted(ROOT.glob(".github/ISSUE_TEMPLATE/[!c]*.yml"))),
        ("github-issue-config", [ROOT / ".github/ISSUE_TEMPLATE/config.yml"]),
        ("citation-file-format", [ROOT / "CITATION.cff"]),
    ],
)
def test_a_file_follows_its_schema(schema: str, files: list[Path]) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert files and done.returncode == 0, done.stdout + done.stderr


def test_the_citation_names_this_version_and_the_four_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == isoviz.__version__
    assert f"## {isoviz.__version__}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert {paper["authors"][0]["family-names"] for paper in citation["references"]} == {
        "Attieh",
        "Rudman",
        "Zhou",
        "Ding",
    }


_EXTRA = re.compile(r"(?<![\w.\]/])(isoviz[\w-]*)\[[a-z{]")
_INSTALL = re.compile(
    r"(?:\binstall\b|\buvx\b|\bpipx run\b|\buv add\b)[^\n`|#]*?(?<![\w./:=-])(isoviz[\w-]*)(?![\w./:-])"
)


def test_everything_that_installs_names_this_package_and_not_the_stranger_of_the_same_name() -> None:
    # In the package index `isoviz` is somebody else's program.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    assert DISTRIBUTION in project["scripts"], "uvx runs the script of the package's name"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    texts = (".py", ".md", ".toml", ".yml", ".yaml", ".txt", ".ipynb", ".html", ".js", ".j2", ".cff", "")
    found = []
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix not in texts or path == Path(__file__) or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for match in (*_EXTRA.finditer(text), *_INSTALL.finditer(text)):
            if match[1] != DISTRIBUTION:
                found.append(f"{name}: {match[0][:80]}")
    assert not found
