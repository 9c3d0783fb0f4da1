"""Records of runs that studies draw, with given numbers, without a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.events import Finished
from isoviz.metrics.record import Measurement
from isoviz.studies.records import LayerProfile, RunRecord
from tests.dashboard.made_up import row, started
from tests.measured import cloud, measurement

Numbers = Callable[[RunConfig], Mapping[str, Any]]


def record(
    config: RunConfig, status: str = "finished", profile: LayerProfile | None = None, **numbers: Any
) -> RunRecord:
    """A run with this `score` in the task's primary metric; `star`, `isoscore`, `i1`, `i2`, `ev`, `minutes` and `collapsed` are what
    they say, the rest are further metrics."""
    numbers_ = dict(numbers)
    isotropy = measured(
        star=numbers_.pop("star", 0.25),
        isoscore=numbers_.pop("isoscore", 0.2),
        ev=numbers_.pop("ev", [0.5, 0.75, 0.8]),
        i1=numbers_.pop("i1", 0.9),
        i2=numbers_.pop("i2", 0.1),
    )
    collapsed = numbers_.pop("collapsed", None)
    minutes = numbers_.pop("minutes", 0.5)
    primary = tasks.get(config.task).primary
    result = Finished(
        metrics={primary: numbers_.pop("score", 0.8), **numbers_},
        isotropy=isotropy,
        timing={"train_seconds": 5.0, "seconds_per_epoch": 60 * minutes},
        collapsed=collapsed,
    )
    name = f"{config.task}-{config.method}-{'-'.join(map(str, config.params.values()))}-{config.seed}"
    made = row(name, config, status, result if status == "finished" else None, started=10.0, ended=14.0)
    return RunRecord(made, started({"bag_of_words": 0.5}), profile)


def measured(star: float, isoscore: float, ev: Sequence[float], i1: float | None, i2: float | None) -> Measurement:
    """Clouds `head`, `pooled` and `layers`, and the output layer."""
    head = cloud("head", 500, 128, list(ev), isoscore=isoscore, isoscore_unbiased=isoscore, mean_cosine=0.1)
    pooled = cloud("pooled", 500, 128, list(ev), isoscore=isoscore)
    return measurement(head, star, pooled, i1=i1, i2=i2)


def records(configs: Sequence[RunConfig], numbers: Numbers) -> list[RunRecord]:
    """A finished run of each configuration."""
    return [record(config, **numbers(config)) for config in configs]
