"""The devices of this machine: its accelerator (a GPU of any maker that torch knows), or the CPU where there is none.

No other module names a kind of accelerator. `describe` does not import torch into the calling process; the other functions are for
processes that use torch anyway, and none of them opens the accelerator before it is needed, because a process cannot fork afterwards.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from isoviz.errors import is_out_of_memory

if TYPE_CHECKING:
    import torch

Precision = Literal["no", "bf16", "fp16"]
Result = TypeVar("Result")

VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
"""The variable that lists the GPUs that a process sees."""
VARIABLES: Final = ("ACCELERATE_USE_CPU", "CUDA_", "HIP_", "ZE_")
"""Beginnings of the variables that determine the device on which a process computes."""
FUSED: Final = frozenset({"cpu", "cuda"})
"""Types of devices on which torch's optimisers update all parameters in one kernel."""
_ON_CPU: Final = {VISIBLE: "", "ACCELERATE_USE_CPU": "true"}
_FORKABLE: Final = {"PYTORCH_NVML_BASED_CUDA_CHECK": "1"}  # torch counts GPUs without opening them
_YES: Final = frozenset({"1", "true", "t", "yes", "y", "on"})
_FREE_SHARE: Final = 0.5
"""Share of a GPU's memory that must be free for a job that is not a training."""


@dataclass(frozen=True)
class Slot:
    """A device on which a run can train, with its label and its memory in bytes."""

    name: str
    label: str
    memory: int


@dataclass(frozen=True)
class Devices:
    """All slots of this machine, whether all of them have bf16 arithmetic, and the number of CPU cores."""

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
    command = [sys.executable, "-m", __name__]
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
    result = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path})
    data: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return Devices(tuple(Slot(**slot) for slot in data["slots"]), data["bf16"], data["cores"])


def resolve_precision(requested: str) -> Precision:
    """`auto` → bf16 on GPUs that compute in it, else float32 ("no"); other values are unchanged."""
    if requested in ("no", "bf16", "fp16"):
        return requested  # type: ignore[return-value]
    devices = describe()
    return "bf16" if devices.on_gpu and devices.bf16 else "no"


def available_cores() -> int:
    """Cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def is_gpu(slot: str) -> bool:
    """Whether a slot is one of several numbered GPUs, such as `cuda:1`, on which one run can train together."""
    return slot.startswith("cuda:")


def environment(slot: str) -> dict[str, str]:
    """The environment variables that show a process only one slot; `any` for all devices."""
    return {**_FORKABLE, **(_ON_CPU if slot == "cpu" else {VISIBLE: visible([slot])} if is_gpu(slot) else {})}


def visible(slots: Iterable[str]) -> str:
    """CUDA_VISIBLE_DEVICES for a process that should see only these GPU slots, relative to the devices visible here."""
    listed = os.environ.get(VISIBLE)
    names = listed.split(",") if listed else []
    indices = [int(slot.partition(":")[2]) for slot in slots]
    return ",".join(names[index].strip() if names else str(index) for index in indices)


# ------------------------------------------------------------------------------------------- in a process that imports torch


def current() -> torch.device:
    """The device on which this process computes: the accelerator, unless ACCELERATE_USE_CPU asks for the CPU."""
    import torch

    accelerator = _accelerator()
    wanted = os.environ.get("ACCELERATE_USE_CPU", "").lower() not in _YES
    if accelerator is not None and wanted and torch.get_device_module(accelerator).is_available():
        return torch.device(accelerator.type)
    return torch.device("cpu")


def opened() -> bool:
    """Whether this process has opened the accelerator. A process forked from it could not use it."""
    if "torch" not in sys.modules or (accelerator := _accelerator()) is None:
        return False
    return bool(getattr(_module(accelerator), "is_initialized", lambda: False)())


def generator_states() -> dict[str, torch.Tensor]:
    """States of the random generators of the CPU and of this process's device, by type."""
    import torch

    states, device = {"cpu": torch.get_rng_state()}, current()
    return states if device.type == "cpu" else {**states, device.type: _module(device).get_rng_state().cpu()}


def set_generator_states(states: dict[str, torch.Tensor]) -> None:
    """Restore the states from `generator_states`, as far as this process has the devices."""
    for kind in states.keys() & {"cpu", current().type}:
        _module(kind).set_rng_state(states[kind])


@functools.cache
def has_float64(kind: str) -> bool:
    """Whether a type of device computes in float64: Apple's and some of Intel's GPUs do not."""
    if kind != "xpu":
        return kind != "mps"
    return bool(_module(kind).get_device_properties().has_fp64)


def where_free(compute: Callable[[torch.device], Result]) -> Result:
    """Compute on the accelerator if at least half of its memory is free, so that a training keeps what it needs; else on the CPU.

    With several GPUs, on the one with most free memory. If its memory runs out, the work starts again on the CPU.
    """
    import torch

    device = freest()
    if device.type != "cpu":
        try:
            return compute(device)
        except Exception as error:
            if not is_out_of_memory(error):
                raise
        finally:
            gc.collect()
            _module(device).empty_cache()
    return compute(torch.device("cpu"))


def freest() -> torch.device:
    """The accelerator with most free memory if at least half of its memory is free; else the CPU."""
    import torch

    device = current()
    module = _module(device)
    if not hasattr(module, "mem_get_info"):  # the CPU, and Apple's GPU, which shares its memory
        return device
    try:
        shares = [free / total for free, total in map(module.mem_get_info, range(module.device_count()))]
    except RuntimeError:  # another process has taken it for itself, or there is no memory left to open it
        return torch.device("cpu")
    best = max(range(len(shares)), key=shares.__getitem__)
    return torch.device(device.type, best) if shares[best] >= _FREE_SHARE else torch.device("cpu")


def room() -> dict[int | str, int]:
    """Bytes of memory that are free: of each GPU that may be used (see `freest`) by its number, and of `cpu`."""
    import psutil

    device = freest()
    free: dict[int | str, int] = {}
    if device.type != "cpu" and hasattr(module := _module(device), "mem_get_info"):
        free = {index: module.mem_get_info(index)[0] for index in range(module.device_count())}
    elif device.type != "cpu":  # Apple's, which shares it
        free = {0: psutil.virtual_memory().available}
    return {**free, "cpu": psutil.virtual_memory().available}


def _accelerator() -> torch.device | None:
    """The kind of accelerator for which torch or one of its extensions is built, whether or not the machine has one."""
    import torch

    try:
        return torch.accelerator.current_accelerator()
    except RuntimeError:  # torch 2.6 without an accelerator
        return None


def _module(device: torch.device | str) -> Any:
    import torch

    return torch if torch.device(device).type == "cpu" else torch.get_device_module(device)


def _inspect() -> Devices:
    import psutil

    device, memory, cores = current(), psutil.virtual_memory().total, available_cores()
    if device.type not in ("cuda", "xpu"):  # torch says nothing else about it
        label = {"cpu": f"CPU, {cores} cores", "mps": "Apple GPU"}.get(device.type, device.type)
        return Devices((Slot(device.type, label, memory),), False, cores)
    module, slots, bf16 = _module(device), [], []
    # Runs share several GPUs only where a variable shows each process its own. Of other makers', they use the first.
    names = [f"cuda:{index}" for index in range(module.device_count())] if device.type == "cuda" else [device.type]
    for index, name in enumerate(names):
        properties = module.get_device_properties(index)
        slots.append(Slot(name, properties.name, properties.total_memory))
        with module.device(index):  # older GPUs emulate bf16, which is slower than float32
            bf16.append(module.is_bf16_supported(including_emulation=False))
    return Devices(tuple(slots), all(bf16), cores)


if __name__ == "__main__":
    print(json.dumps(asdict(_inspect())))
