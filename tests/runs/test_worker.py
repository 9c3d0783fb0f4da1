"""The worker with the real training: what a spare has prepared."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest

from isoviz.runs import planning
from isoviz.runs.execution import DEFAULT_TRAIN
from tests.runs.observing import ended, until

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


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
@pytest.mark.parametrize("megabytes", [4])
def test_memory_too_short_to_load_ends_in_a_status_with_advice(start_runner, local, my_workers, megabytes):
    """The spare has imported everything and may use this much more memory."""
    configs = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("istar", {})], [0], epochs=1, max_train=64)
    start_runner(train=DEFAULT_TRAIN).expect()
    until(my_workers)
    (spare,) = my_workers()
    until(lambda: spare.status() == psutil.STATUS_SLEEPING and "torch" in spare_maps(spare) and idle(spare))
    limit = spare.memory_info().vms + megabytes * 2**20
    spare.rlimit(psutil.RLIMIT_AS, (limit, limit))
    (run_id,) = local.create(configs)
    row = ended(local, run_id)
    log = local.folder_of(run_id) / "worker.log"
    assert row.status in ("failed", "lost") and row.error is not None, log.read_text()
    assert "memory" in row.error["advice"].lower(), (row.error, log.read_text())


def spare_maps(spare: psutil.Process) -> str:
    return " ".join(entry.path for entry in spare.memory_maps())


def idle(spare: psutil.Process) -> bool:
    """Whether it waits for its order."""
    before = sum(spare.cpu_times()[:2])
    time.sleep(1.0)
    return sum(spare.cpu_times()[:2]) - before < 0.02
