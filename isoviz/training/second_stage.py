"""The second stage of methods that train on a frozen encoder's vectors: the encoder runs once, the rest is cheap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isoviz.events import Stepped
from isoviz.methods.protocol import Frozen, Method
from isoviz.models.adapter import HeadedModel
from isoviz.training.heads import Head
from isoviz.training.measuring import Gather

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Stage:
    """The position of the stage in its run: steps and epochs before it, and at most how many steps it takes."""

    first_step: int
    epoch: int
    steps: int


def fit(
    model: HeadedModel,
    method: Method,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    predictor: Head,
    seed: int,
    stage: Stage,
    report: Callable[[Stepped], None],
    check: Callable[[], None],
) -> int:
    """Run the method's `fit_frozen` on the vectors of all processes' `batches`; `report` hears of every step.

    Returns how many steps it took.

    Deterministic by `seed` alone, so that every process, and a resumed run, does the same.
    """
    pooled, labels = _vectors(model, batches, accelerator, gather, check)
    began = time.perf_counter()
    steps, rows = 0, 0

    def report_step(losses: dict[str, float], count: int, learning_rate: float) -> None:
        nonlocal steps, rows
        steps, rows = steps + 1, rows + count
        seconds = time.perf_counter() - began
        report(
            Stepped(
                step=stage.first_step + steps,
                epoch=stage.epoch + steps / stage.steps,
                losses=losses,
                learning_rate=learning_rate,
                samples_per_second=rows / seconds,
                eta_seconds=max(0, stage.steps - steps) * seconds / steps,
            )
        )

    def metric(logits: Tensor, truth: Tensor) -> float:
        value = predictor.quick_metric(logits, truth)
        return -math.inf if value is None else value

    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        method.fit_frozen(Frozen(pooled, labels, model.output, model.task_loss, metric, generator, report_step, check))
    return steps


def _vectors(
    model: HeadedModel,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    check: Callable[[], None],
) -> tuple[Tensor, Tensor]:
    """(n, h) float32 pooled vectors in evaluation mode and (n,) labels, in row order, on this process's device."""
    model.eval()
    batch_vectors: list[tuple[Tensor, Tensor, Tensor]] = []
    for batch in batches:
        check()
        rows = batch.pop("item")
        batch = {name: value.to(accelerator.device) for name, value in batch.items()}
        labels = batch.pop("labels").cpu()
        with torch.no_grad(), accelerator.autocast():
            batch_vectors.append((rows, model.represent(**batch).pooled.float().cpu(), labels))
    parts = [part for process_vectors in gather(batch_vectors) for part in process_vectors]
    rows, pooled, labels = (torch.cat(column) for column in zip(*parts, strict=True))
    order = rows.argsort()
    return pooled[order].to(accelerator.device), labels[order].to(accelerator.device)
