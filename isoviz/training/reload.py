"""A run's model: encoder, method and head as its configuration names them, or from one of its checkpoints."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_model

from isoviz import devices, methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.models import low_rank, placing, sources
from isoviz.models.adapter import HeadedModel, load_network_with_mismatch, load_tokenizer
from isoviz.models.loading import Mismatch
from isoviz.models.sources import ModelSource
from isoviz.training import heads, weights


def build(config: RunConfig, source: ModelSource, head: heads.Head, allow_random: bool) -> tuple[HeadedModel, Mismatch]:
    """The model before its first step, and the encoder weights on which it differs from its checkpoint.

    Args:
        source: on this machine (see `sources.fetch`).
        allow_random: accept a checkpoint that lacks encoder weights.
    """
    kind, method = head.task.kind, methods.get(config.method)
    dtype = placing.number_format(source, config.dtype if config.low_rank else "float32", devices.current())
    network, mismatch = load_network_with_mismatch(
        source, head.num_labels, config.seed, kind, allow_random=allow_random, dtype=dtype, pooling=config.pooling
    )
    if config.low_rank is not None:
        low_rank.add(network, kind, config.low_rank, config.seed)
    if isinstance(
        getattr(network, "score", None), torch.nn.Linear
    ):  # by which transformers alone finds a row's last token
        network.config.pad_token_id = head.tokenizer.pad_token_id
    model = HeadedModel(
        network,
        method(method.Params(**config.params)),
        kind,
        pooling="last" if config.pooling == "auto" or config.pooling == "cls" else config.pooling,
    )
    return model, mismatch


def reload(config: RunConfig, checkpoint: Path) -> tuple[HeadedModel, heads.Head]:
    """The model in evaluation mode on the CPU, with LoRA merged into its weights, and its head, which encodes rows.

    Args:
        config: the run's configuration.
        checkpoint: a folder with `model.safetensors`.

    Raises:
        InputError: the run's initial model is missing, or the weights do not fit it.
    """
    start = weights.find_provenance(checkpoint.parents[1])
    source = sources.fetch(sources.resolve(config.model, commit=start.revision if start else None))
    head = heads.head_for(tasks.get(config.task, config.own), load_tokenizer(source, config.direction), config)
    model, _ = build(config, source, head, allow_random=True)  # the run's weights replace all of these
    try:
        load_model(model, str(checkpoint / "model.safetensors"))
    except (RuntimeError, OSError) as error:
        reason = next(iter(str(error).strip().splitlines()), "")
        raise InputError(f"run: its checkpoint does not fit its model any more ({reason})", field="run") from None
    if config.low_rank is not None:
        low_rank.merge(model.network)
    return model.eval(), head
