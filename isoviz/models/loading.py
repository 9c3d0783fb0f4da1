"""Load a network through transformers, and check it against its checkpoint, so that the requested model is the one measured.

transformers draws every weight that a checkpoint lacks at random and drops every weight that the network has no place for, with
a log line at most. For a new head that is right. For the encoder it means numbers of another model than the one that was named,
so it is an error here unless the caller allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from isoviz import input_validation
from isoviz.errors import ModelError
from isoviz.models import families, sources
from isoviz.models.sources import ModelSource

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# A layer between the encoder and a classifier belongs to the head: masked-language-model checkpoints come without one.
_POOLERS = ("pooler", "pooling")
# Of the few families whose network is its own encoder, the names of a new head.
_HEADS = ("qa_outputs", "classifier", "classification_head", "score", "output_layer")
# Constants that older checkpoints carry as tensors.
_CONSTANTS = ("position_ids", "token_type_ids", "inv_freq", "masked_bias", "attn.bias")
_NAMED = 3


@dataclass(frozen=True)
class Mismatch:
    """The encoder weights on which a network and its checkpoint differ.

    Attributes:
        missing: names of the network's weights that the checkpoint lacks, and that were drawn at random.
        unused: names of the checkpoint's encoder weights that the network has no place for.
        reshaped: names of encoder weights whose shape in the checkpoint is not the network's; these were drawn at random too.
    """

    missing: tuple[str, ...]
    unused: tuple[str, ...]
    reshaped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.unused or self.reshaped)

    def __str__(self) -> str:
        kinds = (
            (self.missing, "encoder weight", "missing from the checkpoint"),
            (self.unused, "encoder weight of the checkpoint", "not used"),
            (self.reshaped, "encoder weight of the checkpoint", "of another shape"),
        )
        return " and ".join(_sentence(names, noun, state) for names, noun, state in kinds if names)


def load_pretrained(
    auto_class: Any, source: ModelSource, *, seed: int = 0, allow_random: bool = False, part: str = "", **options: Any
) -> tuple[PreTrainedModel, Mismatch]:
    """A network, in float32 unless `options` name another dtype, and the encoder weights on which it differs from its checkpoint.

    Args:
        auto_class: of transformers, such as `AutoModel`.
        seed: of the generator that new weights are drawn from.
        allow_random: return a network whose encoder is partly random instead of raising.
        part: attribute path of the part that will be read, if not all of it (`encoder` of an encoder-decoder).
        options: for `from_pretrained`.

    Raises:
        ModelError: (field `model`) the files cannot be loaded, or encoder weights are missing or not used.
    """
    with reading(source), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, report = auto_class.from_pretrained(
            source.location,
            trust_remote_code=False,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # a head for another number of classes is drawn anew; `_mismatch` judges the rest
            **{"dtype": torch.float32, **options},
        )
    mismatch = _mismatch(network, report, part)
    if mismatch and not allow_random:
        problem = f"'{source.name}' does not fit its own checkpoint: {mismatch}"
        advice = "Check config.json against the weights file, or use random weights (--allow-random)."
        raise ModelError.at("model", problem, advice)
    return network, mismatch


def load_bare(source: ModelSource, *, allow_random: bool = False, **options: Any) -> tuple[PreTrainedModel, Mismatch]:
    """As `load_pretrained`, a network that is only read: without a head, and of an encoder-decoder the encoder counts."""
    from transformers import AutoModel

    part = "encoder" if families.architecture(sources.configuration(source)) == "encoder-decoder" else ""
    return load_pretrained(AutoModel, source, allow_random=allow_random, part=part, **options)


def reading(source: ModelSource, part: str = "") -> AbstractContextManager[None]:
    """Around what transformers, tokenizers and safetensors make of a model's files: what they raise is a `ModelError`.

    Args:
        part: what is read, if not the model itself: "the tokenizer of ".
    """
    return input_validation.parsing(f"{part}'{source.name}' cannot be loaded", "model", ModelError)


def _mismatch(network: PreTrainedModel, report: Any, part: str) -> Mismatch:
    """Missing names are the network's own, unexpected ones the checkpoint's, with or without the name of the encoder."""
    base = network.base_model
    whole = base is network
    prefix = "" if whole else network.base_model_prefix + "."
    module_prefix = prefix + (part + "." if part else "")
    formulas = tuple(f"{name}." for name, module in network.named_modules() if "Sinusoidal" in type(module).__name__)
    modules = {name.split(".")[0] for name, _ in base.named_parameters()} - set(_HEADS)

    def of_encoder(name: str) -> bool:
        return name.startswith(module_prefix) and not name.startswith((*_HEADS, *formulas)) and not _is_pooler(name)

    missing = [name for name in report["missing_keys"] if of_encoder(name)]
    reshaped = [name for name, *_ in report["mismatched_keys"] if of_encoder(name)]
    unused = []
    for name in report["unexpected_keys"]:
        inner = name.removeprefix(network.base_model_prefix + ".")
        is_ours = inner.split(".")[0] in modules and inner.startswith(part)
        if is_ours and not _is_pooler(name) and not name.endswith(_CONSTANTS):
            unused.append(name)
    return Mismatch(tuple(sorted(missing)), tuple(sorted(unused)), tuple(sorted(reshaped)))


def _is_pooler(name: str) -> bool:
    return any(word in name for word in _POOLERS)


def _sentence(names: Sequence[str], noun: str, state: str) -> str:
    plural = noun.replace("weight", "weights", 1)
    verb = f"1 {noun} is" if len(names) == 1 else f"{len(names)} {plural} are"
    return f"{verb} {state} ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})"
