"""The accelerator against the CPU: the largest relative difference of everything that IsoViz computes on a device.

    python benchmarks/devices.py [--real] [--out docs]

Tiny models and few rows, in float32 unless a row says otherwise. The device is simulated over host memory (`tests/devices`), so that
the comparison needs no GPU: it finds tensors on the wrong device, wrong random generators and precision lost under autocast, but not
the rounding of a GPU's own kernels. `--real` compares the machine's own accelerator. Exit code 1 if a difference exceeds its bound.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _report import ROOT, Table, finish, machine, options

TOGETHER = {"metric": "metrics and penalties, value and gradient", "transform": "transforms, value and gradient"}
"""Groups that share a row."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--real", action="store_true", help="compare the machine's own accelerator")
    chosen = parser.parse_args()
    outcomes = computed(chosen.real)
    failed = {name: outcome["error"] for name, outcome in outcomes.items() if outcome["error"]}
    for name, error in failed.items():
        print(f"{name}:\n{error}", file=sys.stderr)
    if failed:
        return 1
    table = table_of(outcomes, "own accelerator" if chosen.real else "simulated device")
    beyond = [name for name, outcome in outcomes.items() if outcome["difference"] > outcome["tolerance"]]
    where = machine(("torch", "transformers", "accelerate"), "one thread")
    return finish(chosen, "devices", "## Devices", where, beyond, table)


def computed(real: bool) -> dict[str, dict[str, Any]]:
    """The cases of `tests.devices.comparing` in a new process, which makes the device its accelerator."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "outcomes.json")
        command = [sys.executable, "-m", "tests.devices.comparing", "--out", str(file), *(["--real"] if real else [])]
        variables = {"OMP_NUM_THREADS": "1", "ISOVIZ_HOME": folder, "ISOVIZ_EXAMPLES": "off", "HF_HUB_OFFLINE": "1"}
        subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, **variables})
        return dict(json.loads(file.read_text(encoding="utf-8")))


def table_of(outcomes: dict[str, dict[str, Any]], device: str) -> Table:
    """A row for each case or group of `TOGETHER`."""
    table = Table(f"CPU and {device}", ["computed", "largest relative difference", "bound"])
    for name, outcome in outcomes.items():
        if outcome["group"] not in TOGETHER:
            table.rows.append([name, f"{outcome['difference']:.0e}", f"{outcome['tolerance']:.0e}"])
    for group, title in TOGETHER.items():
        members = [outcome for outcome in outcomes.values() if outcome["group"] == group]
        worst = max(outcome["difference"] for outcome in members)
        table.rows.append([f"{len(members)} {title}", f"{worst:.0e}", f"{members[0]['tolerance']:.0e}"])
    table.notes += [
        "A run's rows compare the losses of all steps, the validation scores and the isotropy of every cloud before and after it. "
        "RankMe, α, the intrinsic dimensions, hubness and reciprocity magnify rounding in the clouds, so they are compared on "
        "equal clouds only.",
        "A bound of 0 means equal numbers. Where memory runs out and after a resume, the second result is of the same device.",
    ]
    return table


if __name__ == "__main__":
    sys.exit(main())
