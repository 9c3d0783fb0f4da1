"""The devices of this machine, detected without importing torch into the calling process."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any, Literal

Precision = Literal["no", "bf16", "fp16"]


@dataclass(frozen=True)
class Slot:
    """A device on which a run can train, with its label and its memory in bytes."""

    name: str
    label: str
    memory: int


@dataclass(frozen=True)
class Devices:
    """All slots of this machine, whether they have bf16 arithmetic, and the number of CPU cores."""

    slots: tuple[Slot, ...]
    bf16: bool
    cores: int

    @property
    def on_gpu(self) -> bool:
        return self.slots[0].name != "cpu"


@functools.cache
def describe() -> Devices:
    """The devices of this machine. The first call imports torch in a separate process, which takes seconds."""
    if "torch" in sys.modules:
        return _inspect()
    command = [sys.executable, "-c", "from isoviz.training import devices; devices.print_json()"]
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    data: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return Devices(tuple(Slot(**slot) for slot in data["slots"]), data["bf16"], data["cores"])


def resolve_precision(requested: str) -> Precision:
    """`auto` → bf16 on GPUs that support it, else float32 ("no"); other values are unchanged."""
    if requested in ("no", "bf16", "fp16"):
        return requested  # type: ignore[return-value]
    devices = describe()
    return "bf16" if devices.on_gpu and devices.bf16 else "no"


def print_json() -> None:
    """Print the devices as JSON, for `describe`, which calls this in a subprocess."""
    print(json.dumps(asdict(_inspect())))


def available_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _inspect() -> Devices:
    import psutil
    import torch

    slots: list[Slot] = []
    bf16 = False
    if torch.cuda.is_available():
        for index in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(index)
            slots.append(Slot(f"cuda:{index}", properties.name, properties.total_memory))
        bf16 = torch.cuda.is_bf16_supported()
    elif torch.backends.mps.is_available():
        slots.append(Slot("mps", "Apple GPU", psutil.virtual_memory().total))
    else:
        slots.append(Slot("cpu", f"CPU, {available_cores()} cores", psutil.virtual_memory().total))
    return Devices(tuple(slots), bf16, available_cores())
