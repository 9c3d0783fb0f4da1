"""IsoViz on a device that is not the CPU: everything that computes on one, against the CPU.

The cases run in a process of their own, because a process that has loaded the simulated device keeps it as its accelerator.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import nightly
from tests.devices import comparing, simulated
from tests.missing import missing

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 800
_OTHERS = ("isobn", "flow", "spans", "gradient accumulation", "LoRA", "bf16 autocast", "running sums")
"""The loss of istar is in that of spans, gradient accumulation and bf16."""
_SLOW = ("method", "task", "training")
USUAL = [
    name
    for name, case in comparing.cases().items()
    if case.on != "real" and (case.group not in _SLOW or name in _OTHERS)
]
"""All that is quick (encoding, metrics, transforms), and some trainings; the rest is nightly."""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    if obstacle := simulated.obstacle():
        missing(obstacle)
    file = tmp_path_factory.mktemp("devices") / "outcomes.json"
    environment = {name: value for name, value in os.environ.items() if name != "ACCELERATE_USE_CPU"}
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "ISOVIZ_EXAMPLES": "off"}
    command = [sys.executable, "-m", "tests.devices.comparing", "--out", str(file)]
    if not nightly.ALL:
        command += ["--cases", *USUAL]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=_SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "name", nightly.cases([name for name, case in comparing.cases().items() if case.on != "real"], always=USUAL)
)
def test_the_device_agrees_with_the_cpu(outcomes: dict[str, dict[str, Any]], name: str) -> None:
    outcome = outcomes[name]
    assert not outcome["error"], outcome["error"]
    assert outcome["difference"] <= outcome["tolerance"]
