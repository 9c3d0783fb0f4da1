"""A method's transform folded into the output layer, so that the network alone gives the same scores."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.errors import InputError
from isoviz.models.hooks import Representations

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from isoviz.models.adapter import HeadedModel

TOLERANCE = 1e-4
"""Largest deviation of a map from affine, as a share of its output: float32 rounds a sum over 1,024 dimensions to less."""


def fold(model: HeadedModel) -> None:
    """Change the output layer of a model in evaluation mode, in place: W(Ah + b) + c becomes (WA)h + (Wb + c).

    A transform in evaluation maps each point for itself, so zero and the unit vectors give b and A; further points show whether it
    is affine at all. An output matrix that shares its weights with the token embeddings gets separate weights.

    Raises:
        InputError: the map is not affine (Flow), or the layer has no bias for b.
    """
    if (affine := affine_of(model)) is None:
        return
    matrix, shift = affine
    output, network = model.output, model.network
    with torch.no_grad():
        constant = output.weight @ shift
        if output.bias is not None:
            output.bias.add_(constant)
        elif model.wiring.bias is not None:
            model.wiring.bias.add_(constant)
        elif shift.any():
            raise InputError.at(
                "method", f"the output layer of '{network.config.model_type}' models has no bias for the method's shift"
            )
        output.weight = nn.Parameter(output.weight @ matrix)
    if getattr(network.config, "tie_word_embeddings", False) and network.get_output_embeddings() is output:
        _untie(network)


def affine_of(model: HeadedModel) -> tuple[Tensor, Tensor] | None:
    """A (h, h) and b (h,) of a method's transform h → Ah + b in evaluation; None if it changes nothing. Errors as for `fold`."""
    h = model.head_width
    shift = _mapped(model, torch.zeros(1, h))[0]
    matrix = (_mapped(model, torch.eye(h)) - shift).T
    points = torch.randn(64, h, generator=torch.Generator().manual_seed(0)) * 3
    expected = _mapped(model, points)
    if float((points @ matrix.T + shift - expected).abs().max()) > TOLERANCE * float(1 + expected.abs().max()):
        raise InputError.at("method", "its map is not affine, so it cannot be written as a linear layer")
    return None if torch.equal(matrix, torch.eye(h)) and not shift.any() else (matrix, shift)


def save_embedder(
    model: HeadedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    prompts: tuple[str, str] = ("", ""),
    longest: int | None = None,
) -> None:
    """Write a model of embeddings as a sentence-transformers folder: network, its modules, the method's map, Normalize.

    Args:
        prompts: words before the first and the second text.
        longest: tokens read of a text at most.

    Raises:
        InputError: the method's map is not affine (Flow).
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Transformer

    affine, modules = affine_of(model), list(model.network.sentence_modules)  # type: ignore[arg-type]
    if affine is not None:
        h, (matrix, shift) = model.head_width, affine
        modules.append(Dense(h, h, activation_function=nn.Identity(), init_weight=matrix.contiguous(), init_bias=shift))
    network = copy.copy(model.network)
    network._modules = {name: module for name, module in network._modules.items() if name != "sentence_modules"}
    names = {name: f"{text} " if text else "" for name, text in zip(("query", "document"), prompts, strict=True)}
    with tempfile.TemporaryDirectory() as place:
        network.save_pretrained(place)
        tokenizer.save_pretrained(place)
        local: dict[str, Any] = {"local_files_only": True}
        first = Transformer(
            place, max_seq_length=longest, model_kwargs=local, config_kwargs=local, processor_kwargs=local
        )
        SentenceTransformer(
            modules=[first, *modules, Normalize()], prompts=names, similarity_fn_name="cosine", device="cpu"
        ).save(str(folder), create_model_card=False)


def save(
    model: HeadedModel,
    folder: Path,
    label_names: Sequence[str] = (),
    generation: Mapping[str, int | None] = MappingProxyType({}),
) -> None:
    """Fold, then write the network as transformers does.

    Args:
        label_names: of the classes, for the configuration.
        generation: options for `generation_config`, of a network that writes texts.
    """
    fold(model)
    network: Any = model.network
    if model.kind in ("classification", "regression"):
        # not LABEL_0 and LABEL_1: transformers leaves its default names out of the file, and BART then expects three classes
        names = label_names or [f"label {number}" for number in range(model.output.out_features)]
        network.config.id2label = dict(enumerate(names))
        network.config.label2id = {name: code for code, name in enumerate(names)}
    if generation:
        network.generation_config.update(**generation)
    network.save_pretrained(folder)


def _untie(network: Any) -> None:
    """Give every parameter separate weights: a file stores shared weights once, and an untied network would miss the copies."""
    network.config.tie_word_embeddings = False
    seen: set[int] = set()
    for name, parameter in list(network.named_parameters(remove_duplicate=False)):
        if parameter.data_ptr() in seen:
            owner, _, own = name.rpartition(".")
            setattr(network.get_submodule(owner), own, nn.Parameter(parameter.detach().clone()))
        seen.add(parameter.data_ptr())


@torch.no_grad()
def _mapped(model: HeadedModel, points: Tensor) -> Tensor:
    reps = Representations(
        cls=points,
        pooled=points,
        last_hidden=points.unsqueeze(1),
        hidden_states=(points.unsqueeze(1),),
        attention_mask=torch.ones(len(points), 1, dtype=torch.long),
        output_weight=model.output.weight,
    )
    return model.hooks.transform(reps, training=False)
