"""The files by which others find, cite and contribute to the project are valid, and name this version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import isoviz

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
