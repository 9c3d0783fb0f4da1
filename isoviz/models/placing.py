"""Where the weights of a model that is only read lie, and in which number format: on one device, or on GPUs, in memory and on disk.

transformers and accelerate place and move the weights; here it is decided whether they must, and said what that costs.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

import torch

from isoviz import devices
from isoviz.errors import InputError, ModelError
from isoviz.models import checkpoint, sources
from isoviz.models.sources import ModelSource

Dtype = Literal["auto", "float32", "bfloat16", "float16"]
"""auto: as the checkpoint stores it on an accelerator, float32 on the CPU."""
DTYPES: Final[tuple[Dtype, ...]] = get_args(Dtype)
_SHARE: Final = 0.8
"""Of what is free, the share that weights may take: the rest is for a batch."""
_GIB: Final = 2**30


@dataclass(frozen=True)
class Placement:
    """What `placed` decided.

    Attributes:
        device: where batches are computed.
        dtype: of the weights.
        spread: the weights do not fit on the device; otherwise the network is loaded into memory and moved.
        options: for `from_pretrained`.
        note: the placement in words; empty unless spread.
    """

    device: torch.device
    dtype: torch.dtype
    spread: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@contextmanager
def placed(source: ModelSource, dtype: Dtype = "auto") -> Iterator[Placement]:
    """Decide how to load a model on this machine; a folder for what is moved to the disk is there meanwhile.

    Args:
        source: on this machine (see `sources.fetch`).

    Raises:
        InputError: an unknown `dtype`.
        ModelError: it does not fit here; says what would.
    """
    device = devices.freest()
    chosen = number_format(source, dtype, device)
    count = checkpoint.parameters(source)
    needed, room = count * chosen.itemsize, devices.room()
    here = room.pop(_key(device), 0)
    if needed <= _SHARE * here:
        yield Placement(device, chosen, options={"dtype": chosen})
        return
    with tempfile.TemporaryDirectory(prefix="isoviz-offload-") as folder:
        disk = shutil.disk_usage(folder).free
        if needed > _SHARE * (here + sum(room.values())) + disk:
            raise ModelError(_refusal(source, count, chosen, here + sum(room.values()), disk), field="model")
        limits = {key: int(_SHARE * free) for key, free in {_key(device): here, **room}.items() if key != "disk"}
        options = {"dtype": chosen, "device_map": "auto", "max_memory": limits, "offload_folder": folder}
        in_memory = min(needed, sum(limits.values()))
        note = (
            f"{needed / _GIB:.1f} GiB of weights do not fit: about {in_memory / _GIB:.1f} GiB stay in memory, the rest is read from "
            "disk for each batch"
        )
        yield Placement(device, chosen, True, options, note)


def _key(device: torch.device) -> int | str:
    return "cpu" if device.type == "cpu" else device.index or 0


def number_format(source: ModelSource, dtype: str, device: torch.device) -> torch.dtype:
    """What a `Dtype` means for a model on a device. `InputError` for an unknown one."""
    if dtype not in DTYPES:
        raise InputError.at("dtype", f"expected {', '.join(DTYPES)} (got {dtype})")
    if dtype == "auto":
        config = sources.configuration(source)
        stored = config.get("dtype") or config.get("torch_dtype")
        dtype = stored if stored in DTYPES and device.type != "cpu" else "float32"
    number: torch.dtype = getattr(torch, dtype)
    return number


def _refusal(source: ModelSource, count: int, dtype: torch.dtype, memory: int, disk: int) -> str:
    name = str(dtype).removeprefix("torch.")
    smaller = f"; bfloat16 needs {2 * count / _GIB:.1f} GiB" if dtype.itemsize > 2 else ""
    return (
        f"model: '{source.name}' needs {count * dtype.itemsize / _GIB:.1f} GiB in {name}, and here {memory / _GIB:.1f} GiB of memory and "
        f"{disk / _GIB:.1f} GiB of disk are free{smaller}. Free some, or choose a model of at most "
        f"{(_SHARE * memory + disk) / 2 / 1e9:.1f} billion weights"
    )
