"""The worker with the real training: what the spare has ready when a run comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from isoviz.jobs import worker

READY = """
import sys
from pathlib import Path
import torch
from isoviz.runs import planning, worker
worker.prepare()
assert not torch.cuda.is_initialized(), "a spare must leave the GPU alone"
from isoviz.training import train
(config,) = planning.expand(
    ["demo/tiny-bert"], ["demo/acceptability"], [("istar", {})], [0], epochs=1, max_train=16, max_eval=16, threads=1
)
before = set(sys.modules)
kinds = []
train(config, lambda event: kinds.append(event.kind), lambda: False, Path(sys.argv[1]))
assert kinds[-1] == "finished", kinds
print("\\n".join(sorted(set(sys.modules) - before)))
"""


@pytest.mark.slow
def test_a_spare_has_imported_what_a_run_needs(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", READY, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    late = done.stdout.split()
    assert len(late) < 100, f"{len(late)} modules are imported while someone waits; add to PRELOADED: {late}"


def test_without_an_order_the_worker_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with (tmp_path / "empty").open("w+") as empty:
        monkeypatch.setattr("sys.stdin", empty)
        assert worker.main(["--prepare", "tests.runs.fake_training"]) == 0
