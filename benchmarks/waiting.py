"""What waiting threads cost: training steps with spinning and with sleeping threads, alone and beside busy processes.

Each variant is a process of its own, because the policy is read when torch is loaded. Prints steps per second.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

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


def pace(policy: str | None, threads: int) -> float:
    """Steps per second of one process under a waiting policy (None: OpenMP's default)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    if policy:
        environment["OMP_WAIT_POLICY"] = policy
    code = STEPS.format(threads=threads)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main() -> None:
    """Interleave the variants, with no and with as many busy processes as there are cores."""
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores, {cores} threads, median of {ROUNDS}, steps per second")
    for busy in (0, cores):
        others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        try:
            rounds = [(pace(None, cores), pace("PASSIVE", cores), pace(None, 1)) for _ in range(ROUNDS)]
        finally:
            for other in others:
                other.kill()
                other.wait()
        spinning, sleeping, single = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(
            f"beside {busy} busy processes: spinning {spinning:.1f}, sleeping {sleeping:.1f} "
            f"(× {sleeping / spinning:.2f}), one thread {single:.1f}"
        )


if __name__ == "__main__":
    main()
