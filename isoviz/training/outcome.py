"""The report of a finished run: the reported epoch, its numbers, its isotropy, its times."""

from __future__ import annotations

import math

from isoviz.config import RunConfig
from isoviz.events import Finished
from isoviz.training import weights
from isoviz.training.checkpoints import Epoch, Progress
from isoviz.training.setup import Setup


def finished(setup: Setup, progress: Progress, seconds_of_this_process: dict[str, float]) -> Finished:
    """The final event, from the history of epochs."""
    reported_epoch = reported(setup.config, progress, setup.task.primary)
    evaluated, measured = reported_epoch.evaluated, reported_epoch.measured
    seconds = progress.train_seconds
    return Finished(
        metrics={**evaluated.metrics, "loss": evaluated.loss, "epoch": measured.epoch},
        isotropy=measured.isotropy,
        timing={
            **progress.timing,
            "seconds_per_epoch": seconds / max(1, progress.epoch),
            "samples_per_second": progress.rows / seconds if seconds else None,
            **seconds_of_this_process,
        },
        weights=weights.saved(setup.run_dir),
        collapsed=evaluated.collapsed,
        random_weights=setup.random_weights,
    )


def reported(config: RunConfig, progress: Progress, primary: str) -> Epoch:
    """The epoch that a run reports: the last one, or with `select=best` the one with the highest metric (the earliest in a tie).

    After a second stage (`Method.fit_frozen`) it is always the last one: the stage started from the last epoch.
    """
    if config.select != "best" or progress.fitted or len(progress.history) == 1:
        return progress.history[-1]
    # epoch 0 has an untrained head and is excluded
    return max(progress.history[1:], key=lambda entry: rank(entry.evaluated.metrics.get(primary)))


def best_step(config: RunConfig, progress: Progress, primary: str) -> int | None:
    """The optimiser step of the weights that the run would report if it ended now; None for the last state."""
    if config.select != "best" or progress.fitted or len(progress.history) < 2:
        return None
    return reported(config, progress, primary).measured.step


def is_over(config: RunConfig, progress: Progress) -> bool:
    """Whether all epochs (and a second stage) are finished, or `early_stopping` applies."""
    if progress.epoch >= config.epochs or progress.fitted:
        return True
    if config.early_stopping is None:
        return False
    metric, patience = config.early_stopping.rsplit(":", 1)
    values = [rank(entry.evaluated.metrics.get(metric)) for entry in progress.history[1:]]
    return bool(values) and len(values) - 1 - values.index(max(values)) >= int(patience)


def rank(value: float | None) -> float:
    """A metric as a number to compare by: undefined is lowest."""
    return -math.inf if value is None or math.isnan(value) else float(value)
