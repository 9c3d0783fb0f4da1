"""A real Ray head for the tests, on free ports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import psutil

from tests.missing import missing
from tests.ports import free_port
from tests.runs.observing import PATIENCE, kill_family

ROOT = Path(__file__).resolve().parents[2]


def require_ray() -> None:
    """Skip the test, or fail it in CI, where Ray is not installed."""
    if find_spec("ray") is None:
        missing("Ray was not found: requirements-dev.txt has it")


class Head:
    """A head with a temporary folder. At the end of the context it stops with everything it started, and no other Ray does.

    Args:
        cpus: that it offers.
    """

    def __init__(self, cpus: int) -> None:
        self._cpus = cpus
        self._port = free_port()
        self._folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: it holds sockets
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"127.0.0.1:{self._port}"

    def __enter__(self) -> Head:
        self.start()
        return self

    def __exit__(self, *details: object) -> None:
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus", str(self._cpus),
                 "--port", str(self._port), "--include-dashboard", "false", "--disable-usage-stats",
                 "--object-store-memory", str(80 * 2**20), "--include-log-monitor", "false",
                 "--temp-dir", self._folder / "ray"],
                env=environment, cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        begin = time.monotonic()
        while not self._answers():
            assert self._process.poll() is None, (self._folder / "log").read_text(errors="replace")
            assert time.monotonic() - begin < PATIENCE, (self._folder / "log").read_text(errors="replace")
            time.sleep(0.2)

    def _answers(self) -> bool:
        return "Ray runtime started" in (self._folder / "log").read_text(errors="replace")

    def crash(self) -> None:
        """All of its processes are gone this moment; the programs of its jobs follow within a second or two."""
        if self._process is None:
            return
        psutil.wait_procs(kill_family(self._process), timeout=PATIENCE)
        self._process = None
        (self._folder / "log").unlink()
