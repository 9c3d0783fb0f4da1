"""The main job without what only Linux or Unix has: fork, signals, process groups, memory limits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="pretends to be Windows")
def test_the_main_job_needs_nothing_of_unix(tmp_path: Path) -> None:
    np.save(tmp_path / "cloud.npy", np.random.default_rng(0).normal(size=(200, 8)))
    path = os.pathsep.join([str(HERE), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": path, "ISOVIZ_HOME": str(tmp_path / "home")}
    for command in (
        ["-m", "tests.elsewhere.main_job", str(tmp_path)],
        ["-m", "isoviz", "measure", "--embeddings", "cloud.npy"],
        ["-m", "isoviz", "check", "cloud.npy", "--save", "cloud.json"],
    ):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=400
        )
        assert done.returncode == 0, done.stderr
