"""Every Python and shell block of the docs runs, in the page's order; `-rs` lists those that are marked as not run."""

from __future__ import annotations

import functools
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoviz.__main__ import build_parser
from isoviz.demo import bundled_model_dir
from isoviz.jobs.processes import share_cores
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from tests.docs.pages import PAGES, Block, blocks
from tests.forked import Command
from tests.models.sentence_folders import make
from tests.tiny import write_cola

SHELL, PYTHON = "bash", "python"
DATA = {"bibtex", "dockerfile", "html", "ini", "json", "markdown", "nginx", "text", "toml", "yaml"}
BLOCKS = [block for page in PAGES for block in blocks(page)]
RUNNABLE = [block for block in BLOCKS if block.language in (SHELL, PYTHON) or "title=" in block.options]
PLAIN = re.compile(r"isoviz [^|&;<>$`*~!]+")
"""A line that needs no shell."""
SLOW = re.compile(r"isoviz (train|sweep|study|report|runs|ruler|frontier|export|upgrade|compare)|--task|--model")
"""In a shell block: it reads models, trains or starts many commands, and is nightly. `make test` parses its lines."""
SMALL = ("--task", "demo/acceptability", "--epochs", "1", "--max-train", "64", "--max-eval", "128")
SMALLER = {"train": "--max-train 64 --max-eval 100 --epochs 1", "measure": "--max-eval 100", "ruler": "--max-eval 100"}
"""Verb → what a page's command that reads a whole task gets in addition; the last of two equal options counts."""


class Lab:
    """A folder with the files that the pages name, and a home with runs in which their commands work.

    Attributes:
        words: a page's word → what it stands for here, such as a run's id, another one each time.
        scopes: the variables of each page's Python blocks.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.home = folder, folder / "home"
        self.scopes: dict[Path, dict[str, Any]] = {}
        self.environment = {
            **os.environ,
            "ISOVIZ_HOME": str(self.home),
            "ISOVIZ_SPARES": "off",
            "HF_HUB_OFFLINE": "1",
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": str(folder / "packages"),
            # `pip install ./FOLDER` goes into this lab, without the package index
            "PIP_TARGET": str(folder / "packages"),
            "PIP_NO_DEPS": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",
        }
        share_cores(self.environment)  # must be known before torch is imported
        _write_files(folder)
        self.words = {
            "RUN_ID": lambda: next(self.runs),
            "EXPERIMENT": lambda: shlex.quote(str(self.finished[0].group)),
        }

    @functools.cached_property
    def finished(self) -> list[RunRow]:
        """Trained where a block names one."""
        self.isoviz("sweep", *SMALL, "--method", "istar", "--grid", "lam=-1,1", "--seeds", "0")
        self.isoviz("train", *SMALL, "--seeds", "7", "--queue")
        with closing(Store(self.home)) as store:
            return store.list(status="finished")

    @functools.cached_property
    def runs(self) -> Iterator[str]:
        return itertools.cycle(row.id for row in self.finished)

    def isoviz(self, *arguments: str) -> None:
        """The test fails where the command fails."""
        command = Command(arguments, self.folder, self.environment)
        assert command.wait(600) == 0, f"isoviz {shlex.join(arguments)}\n{command.stdout}{command.stderr[-3000:]}"

    def shell(self, script: str) -> None:
        """The test fails where it ends with another code than 0."""
        lines = [line for line in script.replace("\\\n", " ").splitlines() if line.partition("#")[0].strip()]
        if all(PLAIN.fullmatch(line) for line in lines):
            for line in lines:
                words = shlex.split(line, comments=True)[1:]
                self.isoviz(*words, *(SMALLER.get(words[0], "").split() if "--task" in words else ()))
            return
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"


def _write_files(folder: Path) -> None:
    (folder / "path/to").mkdir(parents=True)
    shutil.copytree(bundled_model_dir("demo/tiny-bert"), folder / "path/to/encoder")
    for name in ("model", "sentence-transformer"):
        make(folder / "path/to" / name, folder / "path/to/encoder", prompts={"query": "query: "})
    write_cola(folder / "path/to/cola")
    draw = np.random.default_rng(0)
    stars = draw.integers(1, 6, 300)
    points = draw.normal(size=(300, 128)) + stars[:, None]
    np.save(folder / "train.npy", draw.normal(size=(400, 128)))
    np.save(folder / "vectors.npy", points)
    reviews = pd.DataFrame(
        {"id": range(300), "review": [f"review {i}: {s} stars" for i, s in enumerate(stars)], "stars": stars}
    )
    reviews.to_csv(folder / "reviews.csv", index=False)
    with_vectors = reviews.assign(embedding=list(points))
    np.save(folder / "documents.npy", points)
    for name in ("questions", "old_questions", "new_questions"):
        np.save(folder / f"{name}.npy", points[:40])
    for name in ("old", "new"):
        np.save(folder / f"{name}.npy", points)
    texts = reviews.rename(columns={"review": "text"})[["id", "text"]]
    texts.to_csv(folder / "documents.csv", index=False)
    texts[:40].to_csv(folder / "questions.csv", index=False)
    for name in ("reviews", "passages", "vectors", "old", "new"):
        with_vectors.to_parquet(folder / f"{name}.parquet")
    pairs = pd.DataFrame({"query": range(40), "document": range(40, 80), "relevance": 1})
    pairs.to_csv(folder / "relevance.csv", index=False)
    reviews[["id", "review"]].head(60).to_csv(folder / "documents.csv", index=False)
    pd.DataFrame({"text": [f"which review has {n} stars" for n in range(12)]}).to_csv(folder / "questions.csv")
    pd.DataFrame({"query": range(1, 13), "document": range(12)}).to_csv(folder / "links.csv", index=False)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"))


@pytest.fixture
def here(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The lab, with this process in it."""
    monkeypatch.chdir(lab.folder)
    monkeypatch.setenv("ISOVIZ_HOME", str(lab.home))
    return lab


def is_nightly(block: Block) -> bool:
    """Those of tutorials, of stores (`tests/stores` has their commands) and those that need trained runs; README's always run."""
    slow = block.language == SHELL and SLOW.search(block.text) is not None
    slow |= "RUN_ID" in block.text or any(page in block.name for page in ("tutorials", "stores"))
    return slow and "README" not in block.name


def test_the_parser_knows_every_option() -> None:
    texts = [block.text.replace("\\\n", " ") for block in RUNNABLE if block.language == SHELL and "…" not in block.text]
    lines = [line for text in texts for line in text.splitlines() if PLAIN.fullmatch(line)]
    assert len(lines) > 60
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        if words and not Path(words[0]).suffix:
            build_parser(words).parse_args(words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.name, marks=[pytest.mark.nightly] if is_nightly(block) else [])
        for block in RUNNABLE
    ],
)
def test_the_block_runs(block: Block, request: pytest.FixtureRequest) -> None:
    if block.not_run:
        pytest.skip(block.not_run)
    lab: Lab = request.getfixturevalue("here")
    text = re.sub("|".join(lab.words), lambda word: lab.words[word[0]](), block.text)
    if title := re.search('title="(.+)"', block.options):  # a file that the page asks for
        file = lab.folder / title[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    elif block.language == SHELL:
        lab.shell(text)
    else:
        code = compile("\n" * block.line + text, block.page, "exec")
        exec(code, lab.scopes.setdefault(block.page, {"__name__": "page"}))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_names_its_language(page: Path) -> None:
    unknown = [block.name for block in blocks(page) if block.language not in {SHELL, PYTHON, *DATA}]
    assert unknown == [], f"allowed: {SHELL}, {PYTHON}, {', '.join(sorted(DATA))}"
    hidden = [
        block.name for block in blocks(page) if block.language == "text" and "isoviz " in block.text.split("\n")[0]
    ]
    assert hidden == [], "commands are bash blocks"
