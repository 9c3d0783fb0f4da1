"""Out of memory: process each batch in parts, to the whole batch's gradient.

The effective batch of a step stays the same, and so do epochs, steps, schedule and checkpoints. The gradients of parts add up, unless
the loss of embeddings, or a method's penalty or statistics (`Method.of_rows_together`), depend on the rows that share a batch; then
the parts' representations are put together, and the gradients cached.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoviz import devices
from isoviz.errors import IsoVizError
from isoviz.models.adapter import IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable

    from accelerate import Accelerator

    from isoviz.config import RunConfig
    from isoviz.methods.protocol import Representations
    from isoviz.models.adapter import HeadedModel, Outputs

NO_LABELS = "a training batch has labels"


def is_short(error: BaseException) -> bool:
    """Whether an error means that the device or the machine is out of memory."""
    from accelerate.utils.memory import should_reduce_batch_size

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and should_reduce_batch_size(error)


def more_parts(parts: int, config: RunConfig, together: bool, processes: int) -> int:
    """Twice as many parts per batch, after a batch in `parts` did not fit; `together` as for `backward`.

    Raises:
        IsoVizError: more parts would not help, or are not possible.
    """
    if processes > 1 or 2 * parts > config.batch_size:
        split_text = " in all processes" if processes > 1 else f", each split in {parts}" if parts > 1 else ""
        advice = "Shorten the longest input, or choose a smaller batch size or model."
        if not together:
            advice = f"Double the accumulation with half the batch size (the same effective batch). {advice}"
        message = f"out of memory with batches of {config.batch_size} rows{split_text}"
        raise IsoVizError(message, field="batch_size", advice=advice)
    return 2 * parts


def free() -> None:
    """Free the memory of a failed run; call it after dropping all references to the run."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


def backward(
    model: Callable[..., Outputs],
    batch: dict[str, Tensor],
    parts: int,
    accelerator: Accelerator,
    *,
    per_token: bool = False,
    together: bool = False,
) -> dict[str, Tensor]:
    """Add the batch's gradients; returns its detached loss terms and their `total`.

    Args:
        parts: number of parts, processed one after another. Terms and gradients are means over parts, weighted by the number of
            items in the task loss.
        per_token: the task loss is a mean over non-padding target tokens (B, T), otherwise over rows.
        together: loss, penalties or statistics depend on which rows share a batch; then parts are only encoded one by one.
    """
    if parts == 1:
        outputs = model(**batch, penalise=True)
        accelerator.backward(outputs.loss)
        return _losses(outputs)
    if together:
        return _losses(_cached(accelerator.unwrap_model(model), batch, parts, accelerator))
    pieces = _split(batch, parts)
    weights = [float((p["labels"] != IGNORED).sum()) if per_token else float(len(p["labels"])) for p in pieces]
    terms: dict[str, Tensor] = {}
    for piece, weight in zip(pieces, weights, strict=True):
        outputs = model(**piece, penalise=True)
        share = weight / sum(weights)
        assert outputs.loss is not None, NO_LABELS
        accelerator.backward(outputs.loss * share)
        terms = {name: terms.get(name, 0.0) + share * term for name, term in _losses(outputs).items()}
    return terms


def _cached(model: HeadedModel, batch: dict[str, Tensor], parts: int, accelerator: Accelerator) -> Outputs:
    """Gradient caching (Gao et al. 2021): encode all parts without gradients, differentiate the loss of the whole batch by what they gave,
    then encode each part again, with the same dropout, and pass these gradients on.
    """
    tokens = model.hooks.reads_tokens()
    order = torch.arange(len(batch["labels"]), device=batch["labels"].device)
    if not (tokens or model.per_token):  # texts of one length together: less padding
        order = batch["attention_mask"].sum(dim=1).argsort(stable=True)
    pieces = _split({name: values[order] for name, values in batch.items()}, parts)
    passes: list[tuple[list[dict[str, Tensor]], list[Tensor]]] = []

    def encode() -> Representations:
        states, encoded = [], []
        for piece in pieces:
            states.append(devices.generator_states())
            with torch.no_grad(), accelerator.autocast():
                reps = model.represent(**piece)
            encoded.append(
                reps if tokens else replace(reps, cls=reps.pooled, hidden_states=(), last_hidden=reps.pooled)
            )
        leaves = [torch.cat(parts).requires_grad_() for parts in zip(*map(_tensors, encoded), strict=True)]
        passes.append((states, leaves))
        pooled, cls, *layers = leaves if model.per_token else [leaf[order.argsort()] for leaf in leaves]
        joined = replace(
            encoded[0], pooled=pooled, cls=cls, hidden_states=tuple(layers), last_hidden=(cls, *layers)[-1]
        )
        for name in ("attention_mask", "places"):
            values = [getattr(reps, name) for reps in encoded]
            setattr(joined, name, None if values[0] is None else torch.cat(values)[order.argsort()])
        return joined

    with accelerator.autocast():
        outputs = model.read(encode(), batch["attention_mask"], batch["labels"], again=encode)
    accelerator.backward(outputs.loss)
    end = devices.generator_states()
    for states, leaves in passes:
        done = [0] * len(leaves)
        for piece, state in zip(pieces, states, strict=True):
            devices.set_generator_states(state)
            with accelerator.autocast():
                tensors = _tensors(model.represent(**piece))[: len(leaves)]
            ends = [start + len(tensor) for start, tensor in zip(done, tensors, strict=True)]
            pairs = [
                (tensor, leaf.grad[start:end])
                for tensor, leaf, start, end in zip(tensors, leaves, done, ends, strict=True)
                if leaf.grad is not None and tensor.requires_grad
            ]
            torch.autograd.backward([tensor for tensor, _ in pairs], [gradient for _, gradient in pairs])
            done = ends
    devices.set_generator_states(end)
    return outputs


def _tensors(reps: Representations) -> list[Tensor]:
    return [reps.pooled, reps.cls, *reps.hidden_states]


def _split(batch: dict[str, Tensor], parts: int) -> list[dict[str, Tensor]]:
    chunks = zip(*(values.chunk(parts) for values in batch.values()), strict=True)
    return [dict(zip(batch, chunk, strict=True)) for chunk in chunks]


def _losses(outputs: Outputs) -> dict[str, Tensor]:
    assert outputs.loss is not None, NO_LABELS
    return {name: term.detach().float() for name, term in {**outputs.terms, "total": outputs.loss}.items()}
