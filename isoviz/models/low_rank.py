"""LoRA: the network's weights stay as they are, and small matrices beside some of them train in their place (Hu et al. 2022).

The matrices are those of the package peft. What lies between the last layer and the scores (pooler and output layer) trains as a
whole, except for networks that write texts, whose output layer is pretrained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from isoviz.errors import InputError, ModelError, listed, one_line
from isoviz.tasks.protocol import HeadKind

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

_SEED: Final = 7_919
"""Added to the run's seed, so that the matrices are not drawn like the head."""


@dataclass(frozen=True)
class LowRank:
    """How the matrices are made.

    Attributes:
        rank: r, of each update B A, with B (out, r) and A (r, in).
        alpha: the update is scaled by alpha / r.
        dropout: of what A reads, in training.
        targets: names of the linear layers that get one; none for peft's choice for the family, all linear layers where it has none.
    """

    rank: int
    alpha: float
    dropout: float
    targets: tuple[str, ...] = ()


def add(network: PreTrainedModel, kind: HeadKind, low_rank: LowRank, seed: int) -> None:
    """Freeze a network and put the trainable matrices beside its layers, in place. B is zero, so nothing changes yet.

    Raises:
        InputError: it has no layer of one of these names, or only its head has.
    """
    import torch
    from peft import LoraConfig, inject_adapter_in_model
    from peft.utils.constants import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as FAMILIES
    from transformers.pytorch_utils import Conv1D  # GPT-2's linear layers, whose weights are transposed

    head = _head(network, kind)
    linear = {
        name: module
        for name, module in network.named_modules()
        if isinstance(module, (torch.nn.Linear, Conv1D)) and module not in head
    }
    for target in low_rank.targets:
        if not any(f".{name}".endswith(f".{target}") for name in linear):
            names = listed(sorted({name.rpartition(".")[2] for name in linear}))
            raise InputError.at(
                "lora_targets", f"the model has no linear layer '{target}' before its head (it has {names})"
            )
    usual: Any = FAMILIES.get(network.config.model_type, "all-linear")
    options = LoraConfig(
        r=low_rank.rank,
        lora_alpha=low_rank.alpha,  # type: ignore[arg-type]  # it only divides by it
        lora_dropout=low_rank.dropout,
        fan_in_fan_out=any(isinstance(module, Conv1D) for module in linear.values()),
        target_modules=list(low_rank.targets) or usual,
        exclude_modules=[name for name, module in network.named_modules() if module in head] or None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed + _SEED)
        try:
            inject_adapter_in_model(options, network)
        except ValueError as error:
            raise InputError.at(
                "lora_targets", f"no layer of this model can be adapted ({one_line(str(error))})"
            ) from None
    for module in head:
        module.requires_grad_(True)
        if any(True for _ in module.parameters(recurse=False)):
            module.register_forward_pre_hook(_in_its_own_dtype)
    for parameter in network.parameters():
        if parameter.requires_grad:  # steps are too small for the digits of half precision
            parameter.data = parameter.data.float()


def _in_its_own_dtype(module: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """A head that trains in float32 reads what a network in half precision gives."""
    dtype = next(module.parameters(recurse=False)).dtype
    return tuple(value.to(dtype) if value.is_floating_point() else value for value in inputs)


def merge(network: PreTrainedModel) -> None:
    """Add each update to its layer's weights and drop the matrices, in place: a network as without LoRA, for evaluation."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for name, layer in list(network.named_modules()):
        if isinstance(layer, BaseTunerLayer):
            layer.merge()
            network.set_submodule(name, layer.get_base_layer())
    if any("lora_" in name for name, _ in network.named_parameters()):
        raise ModelError.at("model", "its LoRA matrices cannot be merged into its weights")


def _head(network: PreTrainedModel, kind: HeadKind) -> list[nn.Module]:
    from torch import nn

    if kind == "seq2seq":
        return []
    if kind == "embedding":
        return list(getattr(network, "sentence_modules", nn.Module()).modules())
    from isoviz.models.wiring import wire

    base = network.base_model
    if base is network:  # T5 for question answering has no module that holds all of its layers
        return [wire(network, kind).output]
    parts = [module for module in network.children() if module is not base]
    if (pooler := getattr(base, "pooler", None)) is not None:
        parts.append(pooler)
    return list(dict.fromkeys(module for part in parts for module in part.modules()))
