"""FSDP: gradients, optimiser state and, during training, weights are split over a run's processes.

The accelerate configuration enables it (`distributed_type: FSDP`). accelerate supports FSDP only on accelerators, and its wrapper
handles only the forward pass, whereas measures and methods read the encoder's internals. So PyTorch's `fully_shard` is called here,
on any device. For measuring, every process gets all weights.

PyTorch's modules for it take a second to import, so only runs that use it import them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from isoviz.errors import InputError

if TYPE_CHECKING:
    from isoviz.config import RunConfig
    from isoviz.models.adapter import HeadedModel

_OF_ACCELERATE: Final = "ACCELERATE_USE_FSDP"
_WANTED: Final = "ISOVIZ_FSDP"


def take_over() -> None:
    """Prevent accelerate from wrapping models; call before importing it."""
    if os.environ.pop(_OF_ACCELERATE, "").lower() == "true":
        os.environ[_WANTED] = "1"


def wanted() -> bool:
    """Whether the processes of this launch share one model."""
    return dist.is_initialized() and _WANTED in os.environ


def shard(model: HeadedModel, config: RunConfig) -> None:
    """Split a model on its device by transformer blocks; call before creating the optimiser.

    Raises:
        InputError: a method with parameters, which it may set outside the optimiser; fp16; text generation, whose number of forward
            passes differs between processes.
    """
    problem = "does not train text generation" if model.kind == "seq2seq" else ""
    if model.method_state is not None and any(True for _ in model.method_state.parameters()):
        problem = f"cannot split the parameters of the method '{config.method}'"
    if problem:
        raise InputError.at("accelerate_config", f"FSDP {problem}", "Use --processes instead.")
    if config.precision == "fp16":
        raise InputError("precision: FSDP trains in bf16 or float32 (got fp16)", field="precision")
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(next(model.parameters()).device.type, (dist.get_world_size(),))
    blocks = set(getattr(model.network, "_no_split_modules", None) or ())
    for module in model.network.modules():
        if type(module).__name__ in blocks and not isinstance(module, FSDPModule):
            fully_shard(module, mesh=mesh)
    fully_shard(model, mesh=mesh)
    register_fsdp_forward_method(model, "represent")  # measures may call it before any forward pass


@contextmanager
def whole(model: nn.Module) -> Iterator[None]:
    """Context in which every process has all weights, for reading only."""
    if not wanted():
        yield
        return
    from torch.distributed.fsdp import FSDPModule

    parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    try:
        yield
    finally:
        for part in parts:
            part.reshard()
            part.set_reshard_after_forward(part is not model, recurse=False)


def own_copy(weight: Tensor) -> Tensor:
    """A copy of a weight for numpy: a view would keep a sharded model's memory from being freed."""
    return weight.detach().clone() if wanted() else weight


def state_of(model: nn.Module) -> dict[str, Tensor]:
    """All complete weights and buffers; every process must call it."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

    whole = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state: dict[str, Any] = get_model_state_dict(model, options=whole)
    return {name: value.clone() for name, value in state.items()}


def load_state(model: nn.Module, state: dict[str, Any]) -> None:
    """Set all weights and buffers from complete ones; every process must call it."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

    set_model_state_dict(model, state, options=StateDictOptions(full_state_dict=True, cpu_offload=True))


def optimizer_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The optimiser's `state_dict` with complete tensors; every process must call it."""
    state = optimizer.state_dict()
    if not wanted():
        return state
    from torch.distributed.tensor import DTensor

    state["state"] = {
        index: {name: value.full_tensor() if isinstance(value, DTensor) else value for name, value in entry.items()}
        for index, entry in state["state"].items()
    }
    return state


def split_state(
    state: Mapping[int, Mapping[str, Tensor]], optimizer: torch.optim.Optimizer
) -> dict[int, dict[str, Tensor]]:
    """The `state` of `optimizer_state`, split like the optimiser's parameters."""
    if not wanted():
        return dict(state)  # type: ignore[arg-type]
    from torch.distributed.tensor import DTensor, distribute_tensor

    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def part(index: int, value: Tensor) -> Tensor:
        of = parameters[index]
        if not isinstance(of, DTensor) or value.shape != of.shape:
            return value
        return distribute_tensor(value.to(of.device), of.device_mesh, of.placements)

    return {index: {name: part(index, value) for name, value in entry.items()} for index, entry in state.items()}
