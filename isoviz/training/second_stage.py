"""The second stage of methods that train on a frozen encoder's vectors: the encoder runs once, the rest is cheap."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor

from isoviz.events import Stepped
from isoviz.methods.protocol import Frozen, Method
from isoviz.training import processes
from isoviz.training.evaluation import Evaluator


def fit(
    evaluator: Evaluator, method: Method, report: Callable[[Stepped], None], *, step: int, epoch: int, most_steps: int
) -> int:
    """Run the method's `fit_frozen` on the vectors of all training rows; returns how many steps it took.

    Deterministic by the run's seed alone, so that every process, and a resumed run, does the same.

    Args:
        report: called with every step.
        step, epoch: finished before the stage.
        most_steps: at most how many steps it takes.
    """
    pooled, labels = _vectors(evaluator)
    began = time.perf_counter()
    steps, rows = 0, 0

    def report_step(losses: dict[str, float], count: int, learning_rate: float) -> None:
        nonlocal steps, rows
        steps, rows = steps + 1, rows + count
        seconds = time.perf_counter() - began
        report(
            Stepped(
                step=step + steps,
                epoch=epoch + steps / most_steps,
                losses=losses,
                learning_rate=learning_rate,
                samples_per_second=rows / seconds,
                eta_seconds=max(0, most_steps - steps) * seconds / steps,
            )
        )

    def metric(logits: Tensor, truth: Tensor) -> float:
        value = evaluator.head.primary_of(logits, truth)
        return -math.inf if value is None else value

    model, seed = evaluator.model, evaluator.rows.seed
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        check = evaluator.check
        method.fit_frozen(Frozen(pooled, labels, model.output, model.task_loss, metric, generator, report_step, check))
    return steps


def _vectors(evaluator: Evaluator) -> tuple[Tensor, Tensor]:
    """(n, h) float32 pooled vectors in evaluation mode and (n,) labels, in row order, on this process's device."""
    device, read = evaluator.accelerator.device, []
    for rows, batch in evaluator.batches(evaluator.rows.sample(None)):
        labels = batch.pop("labels").cpu()
        with torch.no_grad(), evaluator.accelerator.autocast():
            read.append((rows, evaluator.model.represent(**batch).pooled.float().cpu(), labels))
    parts = [part for process_vectors in processes.gather(read) for part in process_vectors]
    rows, pooled, labels = (torch.cat(column) for column in zip(*parts, strict=True))
    order = rows.argsort()
    return pooled[order].to(device), labels[order].to(device)
