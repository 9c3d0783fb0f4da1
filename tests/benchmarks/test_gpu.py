"""The command for a real GPU, with tiny sizes on the simulated device and on the CPU; and what it keeps when a section fails."""

from __future__ import annotations

import functools
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.devices import simulated
from tests.missing import missing

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    for name in ("CUBLAS_WORKSPACE_CONFIG", "PYTORCH_NVML_BASED_CUDA_CHECK", "HF_HUB_OFFLINE", "ISOVIZ_EXAMPLES"):
        monkeypatch.setenv(name, os.environ.get(name, ""))  # which importing it sets
    return importlib.import_module("gpu")


def command(folder: Path, *words: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """A run of the script, and its record."""
    script = [sys.executable, str(ROOT / "benchmarks" / "gpu.py"), "--out", str(folder), *words]
    environment = {name: value for name, value in os.environ.items() if name != "ACCELERATE_USE_CPU"}
    done = subprocess.run(script, capture_output=True, text=True, env=environment | {"OMP_NUM_THREADS": "1"})
    return done, json.loads((folder / "gpu.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_every_section_on_the_simulated_device(tmp_path: Path, gpu: Any) -> None:
    if obstacle := simulated.obstacle():
        missing(obstacle)
    done, record = command(tmp_path, "--simulated", "--budget", "1600")
    parts = record["sections"]
    ends = {name: part["end"] for name, part in parts.items()}
    assert ends == dict.fromkeys(gpu.SECTIONS, "done"), done.stderr[-3000:]
    assert done.returncode == 0
    judged = {name: [row for row in part["rows"] if row["ok"] is not None] for name, part in parts.items()}
    assert all(row["ok"] for rows in judged.values() for row in rows)
    assert {name for name, rows in judged.items() if rows} >= {"agree", "measure", "encode", "memory", "queue"}
    assert parts["machine"]["rows"][0]["value"].startswith("simulated")
    names = {row["name"] for row in parts["agree"]["rows"]}
    assert names == {"baseline", "istar", "metric isoscore", "transform zca"}
    assert sorted(tmp_path.iterdir()) == [tmp_path / "gpu.json", tmp_path / "gpu.md"]
    text = (tmp_path / "gpu.md").read_text(encoding="utf-8")
    count = sum(map(len, judged.values()))
    assert f"{count} of {count} bars are met." in text and "| istar |" in text and "Not complete" not in text


@pytest.mark.nightly
@pytest.mark.slow
def test_trainer_on_the_cpu(tmp_path: Path) -> None:
    done, record = command(tmp_path, "--quick", "--only", "train")
    names = [row["name"] for row in record["sections"]["train"]["rows"]]
    assert done.returncode == 0 and "CoLA-like, batch 8: ours / Trainer, same batches" in names, done.stderr[-3000:]


def test_a_section_that_fails_takes_no_other_down(tmp_path: Path, gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(work: Any) -> Iterator[Any]:
        yield gpu.row("before", 1.0, "≤ 2")
        raise ZeroDivisionError("no such\nnumber")

    def dies(work: Any) -> Iterator[Any]:
        yield gpu.row("missed", 3.0, "≤ 2")
        os._exit(9)

    def stays(work: Any) -> Iterator[Any]:
        yield gpu.row("kept", 0.5, "≥ 0.5")
        time.sleep(60)

    def works(work: Any) -> Iterator[Any]:
        yield gpu.row("name", "text")

    calls = {"agree": fails, "train": dies, "measure": stays, "queue": works}
    sections = {name: gpu.Section(call, share, f"Of {name}") for share, (name, call) in enumerate(calls.items(), 1)}
    work = functools.partial(gpu.Work, quick=True, simulated=False)
    file = tmp_path / "gpu.json"
    assert gpu.run(sections, file, 24.0, work) == 1  # 2.4 s for the first, which a busy machine needs to begin
    parts = json.loads(file.read_text(encoding="utf-8"))["sections"]
    assert [part["end"].split(":")[0] for part in parts.values()] == ["failed", "failed", "stopped", "done"]
    assert [[row["ok"] for row in part["rows"]] for part in parts.values()] == [[True], [False], [True], [None]]
    text = file.with_suffix(".md").read_text(encoding="utf-8")
    assert "2 of 3 bars are met. Missed: missed." in text and "| missed | 3 | ≤ 2 | missed |" in text
    assert "**Of measure**" in text and "Not complete: stopped: its share of the time was spent." in text
    assert gpu.run({"queue": sections["queue"]}, file, 8.0, work) == 0
    assert gpu.run({"agree": sections["agree"]}, file, 0.0, work) == 0
    assert json.loads(file.read_text(encoding="utf-8"))["sections"]["agree"]["end"].startswith("skipped")
