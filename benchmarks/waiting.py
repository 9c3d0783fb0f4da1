"""The cost of waiting threads: training steps with threads that spin, sleep, or spin briefly first, alone and beside busy processes.

Each variant is a separate process, because torch reads the policy when it is loaded. Prints steps per second; the engine's
choice (`isoviz.jobs.processes.share_cores`) is the third.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from isoviz.jobs.processes import share_cores

STEPS = """
import time, torch
torch.set_num_threads({threads})
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(128, 128) for _ in range(24)])
points = torch.randn(512, 128)
model(points).sum().backward()
began, steps = time.perf_counter(), 0
while time.perf_counter() - began < 4:
    model(points).sum().backward()
    steps += 1
print(steps / (time.perf_counter() - began))
"""
BUSY = "while True: pass"
ROUNDS = 5


VARIANTS: dict[str, dict[str, str]] = {
    "spinning (default)": {},
    "sleeping": {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"},
    "brief spin": {},
}
share_cores(VARIANTS["brief spin"])


def pace(policy: dict[str, str], threads: int) -> float:
    """Steps per second of one process under a waiting policy."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    code = STEPS.format(threads=threads)
    done = subprocess.run([sys.executable, "-c", code], env=clean | policy, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Interleave the variants with no busy process, one, and one per core."""
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {cores} threads unless said, median of {ROUNDS}, steps per second")
    for busy in sorted({0, 1, cores}):
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        try:
            rounds = [
                [*(pace(policy, cores) for policy in VARIANTS.values()), pace(VARIANTS["brief spin"], 1)]
                for _ in range(ROUNDS)
            ]
        finally:
            for other in others:
                other.kill()
                other.wait()
        values = [statistics.median(column) for column in zip(*rounds, strict=True)]
        rates = ", ".join(f"{name} {value:.1f}" for name, value in zip([*VARIANTS, "one thread"], values, strict=True))
        print(f"beside {busy} busy processes: {rates}")


if __name__ == "__main__":
    main()
