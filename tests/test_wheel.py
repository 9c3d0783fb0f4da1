"""The built wheel: complete, reproducible, and enough by itself to measure a file."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz.errors import DISTRIBUTION
from tests.wheel import ROOT, built, start, unpacked

MEGABYTE = 10**6


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return built(ROOT, tmp_path_factory.mktemp("dist"))


def test_the_sdist_builds_the_same_sdist_and_wheel(archives: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = archives
    shutil.unpack_archive(sdist, tmp_path, filter="data")
    again = built(next(tmp_path.iterdir()), tmp_path / "dist")
    assert again[0].read_bytes() == sdist.read_bytes()
    assert again[1].read_bytes() == wheel.read_bytes()
    assert wheel.stat().st_size <= 25 * MEGABYTE


def test_all_lies_inside_the_package(archives: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(archives[1]) as wheel:
        names = set(wheel.namelist())
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"isoviz"}
    parts = ["isoviz", "dashboard", "pages", ".streamlit"]
    tracked = subprocess.run(["git", "ls-files", *parts], cwd=ROOT, capture_output=True, text=True, check=True)
    inside = {name if name.startswith("isoviz/") else f"isoviz/screens/{name}" for name in tracked.stdout.split()}
    assert inside - names == set()


def test_the_core_measures_without_torch_and_names_the_extra_of_the_rest(
    archives: tuple[Path, Path], tmp_path: Path
) -> None:
    site = unpacked(archives[1], tmp_path / "site-packages", core=True)
    assert (site / "numpy").exists() and not (site / "torch").exists() and not (site / "pandas").exists()
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(200, 8)))
    np.save(tmp_path / "links.npy", np.stack([np.arange(200), np.arange(200)], axis=1))
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "x.jsonl").write_text('{"vector": [1, 2]}\n{"vector": [3, 4]}\n')
    pd.DataFrame({"vector": [[1.0, 2.0], [3.0, 4.0]]}).to_parquet(tmp_path / "x.parquet")
    lines = {
        "measure --embeddings x.npy --json": None,
        "x.npy --no-browser": None,
        "page --out page.html --embeddings x.npy": None,
        "lessons --out lessons.html": None,
        "ruler --embeddings x.npy": None,
        "compare x.npy x.npy --queries x.npy x.npy --relevance links.npy": None,
        "check x.npy --save baseline.json": None,
        "check x.npy --baseline baseline.json": None,
        "transform --chain zca --in x.npy --out white.npy": None,
        "measure --embeddings x.csv": "tables",
        "x.csv": "tables",
        "x.jsonl": "tables",
        "x.parquet": "tables",
        "runs list": "train",
        "app": "app",
    }
    for line, extra in lines.items():
        process = start(site, *line.split(), cwd=tmp_path)
        out, errors = process.communicate(timeout=120)
        if extra is None:
            assert process.returncode == 0, (line, errors)
            assert "--json" not in line or '"isoscore_unbiased"' in out
        else:
            assert (process.returncode, len(errors.splitlines())) == (2, 1), (line, errors)
            assert f"pip install '{DISTRIBUTION}[{extra}]'" in errors
    page = (tmp_path / "x.isoviz.html").read_text(encoding="utf-8")
    assert "x.npy" in page and page == (tmp_path / "page.html").read_text(encoding="utf-8")
