"""Runs written event by event, with arrays of sampled clouds, as a worker would write them."""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save_file

from isoviz.config import RunConfig
from isoviz.events import Checkpointed, Entered, Evaluated, Event, Finished, Measured, Started, Stepped
from isoviz.home import make_private
from isoviz.methods import check_params
from isoviz.metrics.record import Measurement
from isoviz.runs.store import Store
from tests.measured import cloud, measurement

STEPS_PER_EPOCH = 40


class Story:
    """One run of a store, written as far as the test needs.

    Args:
        store: where.
        claim: mark the run as running immediately.
        more: fields of the configuration, or `params`, `group`, `name`.
    """

    def __init__(
        self, store: Store, *, claim: bool = True, dimensions: int = 48, rows: int = 200, **more: object
    ) -> None:
        method = str(more.pop("method", "istar"))
        params = check_params(method, dict(more.pop("params", {})))  # type: ignore[call-overload]
        group, name = more.pop("group", None), more.pop("name", None)
        values: dict[str, object] = {"precision": "no", "threads": 2, "epochs": 4, **more}
        self.config = RunConfig(method=method, params=params, **values)  # type: ignore[arg-type]
        self.store = store
        self.dimensions, self.rows = dimensions, rows
        self.random = np.random.default_rng(self.config.seed + len(method))
        self.mixing = np.linalg.qr(self.random.normal(size=(dimensions, dimensions)))[0]
        (self.id,) = store.create([self.config], group=group, name=name)  # type: ignore[arg-type]
        if claim:
            store.claim("test", "cpu", id=self.id)

    @property
    def total(self) -> int:
        return STEPS_PER_EPOCH * self.config.epochs

    def say(self, *events: Event) -> None:
        self.store.append(self.id, events)

    def begin(self, first_step: int = 0) -> Story:
        """Loaded, and (from the start) measured before the first step."""
        self.say(
            Entered(phase="loading", detail=self.config.model),
            Started(
                device="cpu",
                precision="no",
                threads=2,
                total_steps=self.total,
                steps_per_epoch=STEPS_PER_EPOCH,
                train_rows=1000,
                eval_rows=500,
                parameters=2_104_322,
                first_step=first_step,
                startup_seconds=0.7,
                data_fingerprint="2f0c9a1b77d3e654",
                model_fingerprint="9d41e07c5a8812bf",
                versions={"torch": "2.13.0", "transformers": "5.23.0", "accelerate": "1.15.0"},
                baselines={"majority": 0.5, "bag_of_words": 0.56, "random_weights": 0.61},
            ),
        )
        if first_step == 0:
            self.measure(0)
        return self

    def walk(self, first: int, last: int) -> Story:
        """Report the optimiser steps first … last, measuring wherever an epoch ends."""
        for step in range(first, last + 1):
            progress = step / self.total
            task = 0.72 * np.exp(-2.6 * progress) + 0.05 + 0.05 * self.random.normal() * (1.2 - progress)
            penalty = 0.93 - 0.25 * progress + 0.01 * self.random.normal()
            losses = {"task": float(task), "total": float(task)}
            if self.config.method != "baseline":
                losses |= {self.config.method: float(penalty), "total": float(task + 0.3 * penalty)}
            self.say(
                Stepped(
                    step=step,
                    epoch=step / STEPS_PER_EPOCH,
                    losses=losses,
                    learning_rate=6e-4 * (1 - 0.95 * progress),
                    samples_per_second=412.0 + 8 * float(self.random.normal()),
                    eta_seconds=0.09 * (self.total - step),
                )
            )
            if step % STEPS_PER_EPOCH == 0:
                self.measure(step // STEPS_PER_EPOCH)
        return self

    def measure(self, epoch: int) -> Story:
        """Evaluate, measure, write the epoch's arrays and a checkpoint's event."""
        from isoviz import metrics

        step = STEPS_PER_EPOCH * epoch
        decay = {"istar": 1.3 - 0.25 * epoch, "isobn": 1.1 - 0.1 * epoch}.get(self.config.method, 1.5 + 0.1 * epoch)
        spectrum = np.exp(-max(0.15, decay) * np.arange(self.dimensions) / 6)
        points = (self.random.normal(size=(self.rows, self.dimensions)) * np.sqrt(spectrum)) @ (
            0.6 * self.mixing + 0.4 * np.eye(self.dimensions)
        )
        ev = np.atleast_1d(metrics.explained_variance(points))
        correlation = metrics.abs_correlation(points)
        folder = self.store.folder_of(self.id) / "arrays"
        make_private(folder)  # as a run's process does
        save_file(
            {
                "abs_correlation": correlation.astype(np.float16),
                "order": metrics.correlation_order(correlation).astype(np.int32),
                "std": metrics.dimension_std(points).astype(np.float32),
                "ev": ev.astype(np.float32),
            },
            folder / f"epoch-{epoch:03d}.safetensors",
        )
        self.accuracy = 0.52 if epoch == 0 else 1 - 0.42 * float(np.exp(-0.9 * epoch))
        self.isoscore = float(metrics.isoscore(points))
        self.unbiased = float(metrics.isoscore_unbiased(points))
        self.star = 0.6 * self.isoscore
        self.ev = [float(value) for value in ev]
        self.say(
            Evaluated(
                step=step,
                epoch=epoch,
                loss=0.7 * float(np.exp(-0.5 * epoch)) + 0.08,
                metrics={"accuracy": self.accuracy, "matthews": 2 * self.accuracy - 1},
                primary="accuracy",
            ),
            Measured(
                step=step,
                epoch=epoch,
                isotropy=self._isotropy(),
                arrays=f"arrays/epoch-{epoch:03d}.safetensors",
                timing={
                    "train_seconds": 30.0 * epoch,
                    "evaluate_seconds": 4.0 * (epoch + 1),
                    "measure_seconds": 3.0 * (epoch + 1),
                },
            ),
        )
        if epoch:
            self.say(Checkpointed(step=step, epoch=epoch, path=f"checkpoints/step-{step:07d}"))
        return self

    def finish(self) -> Story:
        self.say(
            Finished(
                metrics={
                    "accuracy": self.accuracy,
                    "matthews": 2 * self.accuracy - 1,
                    "loss": 0.15,
                    "epoch": self.config.epochs,
                },
                isotropy=self._isotropy(),
                timing={
                    "train_seconds": 14.2,
                    "seconds_per_epoch": 3.55,
                    "samples_per_second": 412.0,
                    "startup_seconds": 0.7,
                    "total_seconds": 17.9,
                },
            )
        )
        return self

    def complete(self) -> Story:
        """From the first event to the last."""
        return self.begin().walk(1, self.total).finish()

    def _isotropy(self) -> Measurement:
        numbers = {"mean_cosine": 0.02, "participation_ratio": 9.0, "effective_rank": 21.0, "twonn": 11.3}
        scores = {"isoscore": self.isoscore, "isoscore_unbiased": self.unbiased}
        names = ("head", "pooled", *(f"layer_{number}" for number in range(1, 5)))
        head, *others = (cloud(name, self.rows, self.dimensions, self.ev, **scores, **numbers) for name in names)
        return measurement(head, self.star, *others, i1=0.62, i2=0.01)
