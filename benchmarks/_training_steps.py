"""The first part of `training.py`: a step of every method over the plain step, on the same batches in turn."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from itertools import islice

import torch
from _charts import milliseconds
from _report import Table
from _training import BATCH, Scale, moment, padded
from _workload import COLA, TASK, Encoder
from accelerate import Accelerator

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.methods.istar import IStar
from isoviz.methods.protocol import Method, Representations, Sample
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network
from isoviz.training import processes
from isoviz.training.optimisation import make_optimizer, make_scheduler

WARM_UP = 3
PLAIN, AGAIN, OURS, EIGEN = "baseline", "baseline again", "istar", "istar by eigenvalues"
STEP_BAR = 1.10


class EigenIStar(IStar):
    """I-STAR with its penalty taken from the eigenvalues of the same Σ_ζ, differentiated by torch."""

    def penalties(self, reps: Representations) -> dict[str, torch.Tensor]:
        with torch.autocast(reps.last_hidden.device.type, enabled=False):
            points = self._points(reps).float()
            zeta, d = self.params.zeta, points.shape[1]
            mixed = (1 - zeta) * torch.cov(points.T) + zeta * self.buffer("shrinkage")
            values = torch.linalg.eigvalsh(mixed)
            score = (values.sum() ** 2 / values.square().sum() - 1) / (d - 1)
            return {"istar": self.params.lam * (1 - score)}


class Stepper:
    """One method on its own copy of an encoder, with the optimiser and the schedule of a run."""

    def __init__(self, method: type[Method], encoder: Encoder, accelerator: Accelerator, steps: int) -> None:
        config = RunConfig(model=encoder.model, task=TASK, method=method.slug, batch_size=BATCH)
        self.method = method(method.Params())
        model = HeadedModel(load_network(sources.resolve(encoder.model), 2, config.seed), self.method)
        optimizer = make_optimizer(model, config)
        scheduler = make_scheduler(optimizer, config, steps)
        self.accelerator = accelerator
        self.model, self.optimizer, self.scheduler = accelerator.prepare(model, optimizer, scheduler)

    def refresh(self, batches: list[dict[str, torch.Tensor]]) -> float:
        """The method's statistics over these training rows; seconds taken."""

        def representations(_tokens: int) -> Iterator[Representations]:
            for batch in batches:
                yield self.model(**{name: value for name, value in batch.items() if name != "labels"}).reps

        self.model.eval()
        begin = moment()
        with torch.no_grad():
            self.method.refresh(Sample(0, representations))
        return moment() - begin

    def step(self, batch: dict[str, torch.Tensor]) -> float:
        """One step as the loop takes it; seconds taken."""
        self.model.train()
        begin = moment()
        with self.accelerator.accumulate(self.model):
            outputs = self.model(**batch, penalise=True)
            self.accelerator.backward(outputs.loss)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
        torch.stack([term.detach().float() for term in (*outputs.terms.values(), outputs.loss)]).tolist()
        return moment() - begin


def step_table(encoder: Encoder, scale: Scale) -> tuple[Table, dict[str, float], list[str]]:
    """Every method's step on one encoder: the table, milliseconds by contender, and the bar if it was missed."""
    processes.begin()
    accelerator = Accelerator(mixed_precision="no", step_scheduler_with_optimizer=False)
    batches = list(islice(padded(encoder, COLA, (scale.steps + WARM_UP) * BATCH), scale.steps + WARM_UP))
    batches = [{name: value.to(accelerator.device) for name, value in batch.items()} for batch in batches]
    catalogue = methods.catalogue()
    kinds = {PLAIN: catalogue[PLAIN], AGAIN: catalogue[PLAIN], **catalogue, EIGEN: EigenIStar}
    steppers = {name: Stepper(kind, encoder, accelerator, len(batches)) for name, kind in kinds.items()}
    refreshed = {name: stepper.refresh(batches) for name, stepper in steppers.items()}
    took: dict[str, list[float]] = {name: [] for name in steppers}
    names = list(steppers)
    for number, batch in enumerate(batches):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            seconds = steppers[name].step(batch)
            if number >= WARM_UP:
                took[name].append(1e3 * seconds)
    medians = {name: statistics.median(times) for name, times in took.items()}
    tokens = statistics.median(int(batch["attention_mask"].sum()) for batch in batches)
    table = Table(
        f"One training step, {encoder.name}, {BATCH} rows, {COLA.name} lengths",
        ["method", "ms", "over the baseline's", "on the same batch"],
        notes=[
            f"Medians of {scale.steps} steps, about {tokens:.0f} tokens each; over the baseline's: ratio of the medians; on the same "
            "batch: median of the ratios batch by batch. Default parameters of each method.",
            f"'{AGAIN}' is the same method a second time: what it differs by is noise. IsoLayer acts after fine-tuning: its "
            "steps are the baseline's with the identity added.",
            f"I-STAR's pass for Σ_S before each epoch takes {refreshed[OURS] / len(batches) / medians[PLAIN] * 1e3:.2f} of a plain step "
            "per batch that it reads (about 250,000 points, so not all of a large training set).",
        ],
    )
    for name in names:
        paired = statistics.median(ours / plain for ours, plain in zip(took[name], took[PLAIN], strict=True))
        table.rows.append([name, milliseconds(medians[name]), f"{medians[name] / medians[PLAIN]:.2f}", f"{paired:.2f}"])
    ratio = medians[OURS] / medians[PLAIN]
    missed = [f"{encoder.name}: I-STAR step {ratio:.3f} × plain, allowed {STEP_BAR}"] if ratio > STEP_BAR else []
    return table, medians, missed
