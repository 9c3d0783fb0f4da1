"""A real Ray head for the tests, from a separate virtual environment, on free ports."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from isoviz.runs.ray_jobs import Cluster, ClusterUnavailableError
from tests.missing import missing
from tests.ports import free_port
from tests.runs.observing import PATIENCE, kill_family

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "0123456789abcdef-of-the-tests"


def program() -> str | None:
    """The program `ray`; None where it is not installed."""
    return shutil.which("ray", path=f"{ROOT / '.ray' / 'bin'}{os.pathsep}{os.environ['PATH']}")


def installed() -> str:
    """`program`, or the test is skipped, or fails in CI."""
    path = program()
    if path is None:
        missing("Ray was not found: `make ray` installs it")
    return path


class Head:
    """A head with a temporary folder. At the end of the context it stops with everything it started, and no other Ray does.

    Args:
        program: see `installed`.
        cpus: that it offers.
    """

    def __init__(self, program: str, cpus: int) -> None:
        self._program = program
        self._cpus = cpus
        self._ports = {name: str(free_port()) for name in ("port", "dashboard-port", "dashboard-agent-listen-port")}
        self._folder = Path(tempfile.mkdtemp(prefix="ray-"))  # short: it holds sockets
        self._process: subprocess.Popen[bytes] | None = None
        self.address = f"http://127.0.0.1:{self._ports['dashboard-port']}"

    def __enter__(self) -> Head:
        self.start()
        return self

    def __exit__(self, *details: object) -> None:
        self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it, and wait until it answers and has counted its resources."""
        words = [word for name, port in self._ports.items() for word in (f"--{name}", port)]
        environment = {
            **os.environ,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": TOKEN,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_prestart_worker_first_driver": "0",
        }
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "start", "--head", "--block", "--num-cpus", str(self._cpus), *words,
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
        try:
            return bool(Cluster(self.address, TOKEN).nodes())
        except ClusterUnavailableError:
            return False

    def crash(self) -> None:
        """All of its processes are gone this moment; the programs of its jobs follow within a second or two."""
        if self._process is None:
            return
        psutil.wait_procs(kill_family(self._process), timeout=PATIENCE)
        self._process = None
