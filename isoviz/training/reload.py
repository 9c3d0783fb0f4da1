"""A run's model from one of its checkpoints: encoder, method and head."""

from __future__ import annotations

from pathlib import Path

from safetensors.torch import load_model

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.models import low_rank, sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.training import heads, origin


def reload(config: RunConfig, checkpoint: Path) -> tuple[HeadedModel, heads.Head]:
    """The model in evaluation mode on the CPU, with LoRA merged into its weights, and its head, which encodes rows.

    Args:
        config: the run's configuration.
        checkpoint: a folder with `model.safetensors`.

    Raises:
        InputError: the run's initial model is missing, or the weights do not fit it.
    """
    start = origin.find(checkpoint.parents[1])
    source = sources.fetch(sources.resolve(config.model, commit=start.revision if start else None))
    task = tasks.get(config.task, config.own)
    head = heads.head_for(task, load_tokenizer(source, config.direction), config)
    # The run's weights replace all of these.
    network = load_network(source, head.num_labels, config.seed, task.kind, allow_random=True)
    if config.low_rank is not None:
        low_rank.add(network, task.kind, config.low_rank, config.seed)
    method = methods.get(config.method)
    model = HeadedModel(network, method(method.Params(**config.params)), task.kind)
    try:
        load_model(model, str(checkpoint / "model.safetensors"))
    except (RuntimeError, OSError) as error:
        reason = next(iter(str(error).strip().splitlines()), "")
        raise InputError(f"run: its checkpoint does not fit its model any more ({reason})", field="run") from None
    if config.low_rank is not None:
        low_rank.merge(network)
    return model.eval(), head
