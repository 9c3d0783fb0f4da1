"""Out of memory: split each batch into parts whose gradients add up to the batch's gradient.

The effective batch of a step stays the same, and so do epochs, steps, schedule and checkpoints. A method whose penalty or statistics
depend on the rows read together (`Method.of_rows_together`) would change, so its run fails with advice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoviz.errors import IsoVizError
from isoviz.models.adapter import IGNORED

if TYPE_CHECKING:
    from collections.abc import Callable

    from accelerate import Accelerator

    from isoviz.config import RunConfig
    from isoviz.methods.protocol import Method
    from isoviz.models.adapter import Outputs

NO_LABELS = "a training batch has labels"


def is_short(error: BaseException) -> bool:
    """Whether an error means that the device or the machine is out of memory."""
    from accelerate.utils.memory import should_reduce_batch_size

    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and should_reduce_batch_size(error)


def more_parts(parts: int, config: RunConfig, method: type[Method], processes: int) -> int:
    """Twice as many parts per batch, after a batch in `parts` did not fit.

    Raises:
        IsoVizError: more parts would not help, or would change what is computed.
    """
    message = f"out of memory with batches of {config.batch_size} rows"
    if config.loss != "auto":  # of embeddings
        raise IsoVizError(
            message,
            field="batch_size",
            advice="Each row is compared with the others of its batch, so batches cannot be split, and accumulation does not replace a "
            "larger batch: choose a smaller batch size, a shorter longest input or a smaller model.",
        )
    if method.of_rows_together:
        raise IsoVizError(
            message,
            field="batch_size",
            advice=f"{method.title} depends on the rows that are read together, so its batches cannot be split: "
            "choose a smaller batch size, a shorter longest input or a smaller model.",
        )
    if processes > 1 or 2 * parts > config.batch_size:
        split_text = " in all processes" if processes > 1 else f", each split in {parts}" if parts > 1 else ""
        raise IsoVizError(
            message + split_text,
            field="batch_size",
            advice="Halve the batch size and double the accumulation (the same effective batch), shorten the longest input, "
            "or choose a smaller model.",
        )
    return 2 * parts


def free() -> None:
    """Free the memory of a failed run; call it after dropping all references to the run."""
    from accelerate.utils.memory import clear_device_cache

    clear_device_cache(garbage_collection=True)


def backward(
    model: Callable[..., Outputs], batch: dict[str, Tensor], parts: int, per_token: bool, accelerator: Accelerator
) -> dict[str, Tensor]:
    """Add the batch's gradients; returns its detached loss terms and their `total`.

    Args:
        parts: number of parts, processed one after another. Terms and gradients are means over parts, weighted by the number of
            items in the task loss.
        per_token: the task loss is a mean over non-padding target tokens (B, T), otherwise over rows.
    """
    if parts == 1:
        outputs = model(**batch, penalise=True)
        accelerator.backward(outputs.loss)
        return _losses(outputs)
    pieces = [
        dict(zip(batch, piece, strict=True)) for piece in zip(*(v.chunk(parts) for v in batch.values()), strict=True)
    ]
    weights = [float((p["labels"] != IGNORED).sum()) if per_token else float(len(p["labels"])) for p in pieces]
    terms: dict[str, Tensor] = {}
    for piece, weight in zip(pieces, weights, strict=True):
        outputs = model(**piece, penalise=True)
        share = weight / sum(weights)
        assert outputs.loss is not None, NO_LABELS
        accelerator.backward(outputs.loss * share)
        terms = {name: terms.get(name, 0.0) + share * term for name, term in _losses(outputs).items()}
    return terms


def _losses(outputs: Outputs) -> dict[str, Tensor]:
    assert outputs.loss is not None, NO_LABELS
    return {name: term.detach().float() for name, term in {**outputs.terms, "total": outputs.loss}.items()}
