"""Runs for tests of what pages and tables show, with numbers no one could mistake for results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isoviz.config import RunConfig
from isoviz.events import Diverged, Evaluated, Event, Failed, Finished, Measured, Started
from isoviz.methods import check_params
from isoviz.metrics.record import Measurement
from isoviz.runs.rows import RunRow
from isoviz.runs.store import Store
from tests.measured import cloud, measurement


def config(
    method: str = "baseline", seed: int = 0, params: Mapping[str, object] | None = None, **more: Any
) -> RunConfig:
    """A resolved configuration."""
    more = {"precision": "no", "threads": 1, **more}
    return RunConfig(method=method, params=check_params(method, params or {}), seed=seed, **more)


def result(
    value: float | None,
    star: float | None,
    isoscore: float | None = 0.2,
    seconds: float = 5.0,
    collapsed: str | None = None,
    **metrics: Any,
) -> Finished:
    """How a run ended."""
    return Finished(
        metrics={"accuracy": value, "matthews": value, "loss": 0.5, "epoch": 3, **metrics},
        isotropy=_isotropy(star, isoscore),
        timing={"train_seconds": seconds, "seconds_per_epoch": seconds / 3},
        collapsed=collapsed,
    )


def _isotropy(star: float | None, isoscore: float | None) -> Measurement:
    numbers = dict.fromkeys(("participation_ratio", "effective_rank", "twonn"), 2.0)
    scores = dict.fromkeys(("isoscore", "isoscore_unbiased"), isoscore)
    return measurement(cloud("head", 500, 128, [0.5, 0.75], mean_cosine=0.1, **scores, **numbers), star)


def row(run: str, cfg: RunConfig, status: str = "finished", outcome: Finished | None = None, **more: Any) -> RunRow:
    """A row of the store, without a store."""
    values: dict[str, Any] = {
        **dict.fromkeys(("group", "started", "ended", "heartbeat", "owner", "host", "device", "pid")),
        **dict.fromkeys(("pid_started", "pid_scope")),
        **dict.fromkeys(("error", "result", "progress", "position", "visitor")),
        "id": run,
        "name": run,
        "status": status,
        "config": cfg,
        "created": 0.0,
        "queued": 0.0,
        "tags": (),
        "note": "",
        "stop_requested": False,
        "resume": False,
        "attempt": 1,
        "result": outcome,
    }
    return RunRow(**{**values, **more})


def started(baselines: Mapping[str, float | None] | None = None) -> Started:
    """A run's first fact."""
    return Started(
        device="cpu",
        precision="no",
        threads=1,
        total_steps=100,
        steps_per_epoch=5,
        train_rows=160,
        eval_rows=500,
        parameters=1000,
        startup_seconds=0.5,
        data_fingerprint="d",
        model_fingerprint="m",
        versions={},
        baselines=dict(baselines or {"majority": 0.5, "bag_of_words": 0.625}),
    )


def measured(star: float | None, isoscore: float | None, epoch: int = 3) -> Measured:
    """The measurement after an epoch."""
    arrays = "arrays/epoch-003.safetensors"
    return Measured(step=10, epoch=epoch, isotropy=_isotropy(star, isoscore), arrays=arrays)


def finish(
    store: Store,
    cfg: RunConfig,
    value: float,
    star: float | None,
    group: str | None = None,
    before: Sequence[Event] = (),
    **more: Any,
) -> str:
    """Put a run through a real store to its planned end; `before`: what it reports before it starts."""
    (run,) = store.create([cfg], group=group)
    store.claim("test", "cpu", id=run)
    store.append(run, before)
    outcome = result(value, star, **more)
    evaluated = Evaluated(
        step=10, epoch=3, loss=0.5, metrics={"accuracy": value, "matthews": value}, primary="accuracy"
    )
    store.append(run, [started(), evaluated, measured(star, outcome.isotropy.number("isoscore")), outcome])
    return run


def fail(store: Store, cfg: RunConfig, group: str | None = None, diverge: bool = False) -> str:
    """Put a run through a real store to an exception, or to a non-finite loss."""
    (run,) = store.create([cfg], group=group)
    store.claim("test", "cpu", id=run)
    ending = (
        Diverged(term="istar", step=7, message="the loss term 'istar' became non-finite at step 7", advice="Lower λ.")
        if diverge
        else Failed(error="RuntimeError", message="out of *memory* <b>", advice="Halve the batch.")
    )
    store.append(run, [started(), ending])
    return run
