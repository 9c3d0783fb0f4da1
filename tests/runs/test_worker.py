"""The worker with the real training: what a spare has prepared."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

READY = """
import sys
from pathlib import Path
import torch
from isoviz.runs import execution, planning
execution.prepare()
assert not torch.cuda.is_initialized(), "a spare must leave the GPU alone"
from isoviz.training.loop import train
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
def test_a_spare_has_imported_what_a_run_needs(tmp_path):
    done = subprocess.run([sys.executable, "-c", READY, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    late = done.stdout.split()
    assert len(late) < 100, f"{len(late)} modules are imported while someone waits; add to PRELOADED: {late}"


def idle(spare: psutil.Process) -> bool:
    """Whether it waits for its order."""
    before = sum(spare.cpu_times()[:2])
    time.sleep(1.0)
    return sum(spare.cpu_times()[:2]) - before < 0.02
