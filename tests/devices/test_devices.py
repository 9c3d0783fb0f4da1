"""Which device computes: slots, precision, visibility, and no GPU opened before a fork."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from isoviz import devices
from isoviz.jobs.processes import environment
from isoviz.training import processes

ROOT = Path(__file__).resolve().parents[2]
GIB = 2**30


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Pretend that torch has an accelerator of a kind, whose module has these attributes."""

    def pretend(kind: str, count: int = 1, **attributes: Any) -> None:
        module = SimpleNamespace(
            is_available=lambda: True,
            device_count=lambda: count,
            device=lambda index: nullcontext(setattr(module, "index", index)),
            **attributes,
        )
        monkeypatch.setattr(devices, "_accelerator", lambda: torch.device(kind))
        monkeypatch.setattr(torch, "get_device_module", lambda device=None: module)

    monkeypatch.delenv("ACCELERATE_USE_CPU", raising=False)
    devices.describe.cache_clear()
    yield pretend
    monkeypatch.undo()
    devices.describe.cache_clear()
    devices.has_float64.cache_clear()


def named(index: int) -> Any:
    return SimpleNamespace(name=f"GPU {index}", total_memory=(index + 1) * GIB)


def test_gpus_that_only_emulate_bf16_train_in_float32(accelerator: Callable[..., None]) -> None:
    capable = [True, True]

    def supported(including_emulation: bool = True) -> bool:
        return including_emulation or capable[torch.get_device_module().index]

    accelerator("cuda", 2, get_device_properties=named, is_bf16_supported=supported)
    assert devices.resolve_precision("auto") == "bf16"
    assert [(slot.name, slot.memory) for slot in devices.describe().slots] == [("cuda:0", GIB), ("cuda:1", 2 * GIB)]
    capable[1] = False  # the second GPU is older
    devices.describe.cache_clear()
    assert devices.resolve_precision("auto") == "no"
    assert devices.resolve_precision("bf16") == "bf16"


@pytest.mark.parametrize("kind", ["xpu", "mps"])
def test_other_accelerators_are_used(accelerator: Callable[..., None], kind: str) -> None:
    accelerator(kind, 2, get_device_properties=named, is_bf16_supported=lambda including_emulation: True)
    (slot,) = devices.describe().slots
    assert (slot.name, devices.describe().on_gpu, devices.current()) == (kind, True, torch.device(kind))
    assert not processes.on_cpu()


@pytest.mark.parametrize(("value", "kind"), [("true", "cpu"), ("1", "cpu"), ("false", "xpu"), ("", "xpu")])
def test_the_cpu_is_used_on_request(
    accelerator: Callable[..., None], monkeypatch: pytest.MonkeyPatch, value: str, kind: str
) -> None:
    accelerator("xpu", get_device_properties=named, is_bf16_supported=lambda including_emulation: True)
    monkeypatch.setenv("ACCELERATE_USE_CPU", value)
    assert devices.current().type == kind
    assert [slot.name for slot in devices.describe().slots] == [kind]
    assert processes.on_cpu() == (kind == "cpu")


@pytest.mark.parametrize("kind", ["mps", "xpu"])
def test_checkpoints_hold_the_generator_of_any_accelerator(accelerator: Callable[..., None], kind: str) -> None:
    state = [torch.tensor([7], dtype=torch.uint8)]
    accelerator(kind, get_rng_state=lambda: state[0], set_rng_state=lambda value: state.__setitem__(0, value))
    saved = devices.generator_states()
    state[0] = torch.tensor([8], dtype=torch.uint8)
    devices.set_generator_states(saved)
    assert saved.keys() == {"cpu", kind} and state[0].item() == 7
    devices.set_generator_states({"cpu": saved["cpu"], "cuda": state[0]})  # of a run that began on another device
    assert state[0].item() == 7


def test_jobs_use_the_gpu_with_most_free_memory_unless_all_are_busy(accelerator: Callable[..., None]) -> None:
    free = [[2 * GIB, 8 * GIB], [6 * GIB, 8 * GIB]]
    accelerator("cuda", 2, mem_get_info=lambda index: tuple(free[index]), empty_cache=lambda: None)
    assert devices.where_free(str) == "cuda:1"
    free[1][0] = 3 * GIB
    assert devices.where_free(str) == "cpu"


def test_a_job_moves_to_the_cpu_only_if_memory_runs_out(accelerator: Callable[..., None]) -> None:
    accelerator("cuda", mem_get_info=lambda index: (8 * GIB, 8 * GIB), empty_cache=lambda: None)

    def fails_on_the_gpu(error: Exception) -> Callable[[torch.device], str]:
        def compute(device: torch.device) -> str:
            if device.type != "cpu":
                raise error
            return device.type

        return compute

    assert devices.where_free(fails_on_the_gpu(torch.OutOfMemoryError("CUDA out of memory"))) == "cpu"
    with pytest.raises(ZeroDivisionError):
        devices.where_free(fails_on_the_gpu(ZeroDivisionError()))


def test_a_process_that_has_opened_a_gpu_does_not_fork(accelerator: Callable[..., None]) -> None:
    accelerator("cuda", is_initialized=lambda: True)
    assert devices.opened()
    accelerator("cuda", is_initialized=lambda: False)
    assert not devices.opened()


SPY = """
import json, os, sys, types
import torch

calls = []

def spied(module, name, function):
    def call(*arguments, **named):
        calls.append(f"{module.__name__}.{name}")
        return function(*arguments, **named)
    return call

for module in (torch.cuda, torch.xpu, torch.mps, torch.accelerator):
    for name, function in list(vars(module).items()):
        if isinstance(function, types.FunctionType) and not isinstance(function, type):
            setattr(module, name, spied(module, name, function))
from isoviz import devices
from isoviz.runs import execution
execution.prepare()
assert not devices.opened()
print(json.dumps({"calls": calls, "by_nvml": os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK")}))
"""
_HARMLESS = {
    "current_accelerator",  # what torch is built for
    "is_available",  # by the library NVML, given PYTORCH_NVML_BASED_CUDA_CHECK
    "device_count",
    "_is_compiled",
    "_device_count_nvml",
    "_nvml_based_avail",
    "_parse_visible_devices",
    "is_initialized",
}


def test_a_spare_opens_no_gpu_before_it_forks() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SPY], capture_output=True, text=True, check=True, env=environment("any"), cwd=ROOT
    )
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["by_nvml"] == "1"
    assert {call for call in report["calls"] if call.rpartition(".")[2] not in _HARMLESS} == set()
    assert report["calls"], "the spy hears nothing"
