"""One fine-tuning run, to read top to bottom: load, measure, then train and measure epoch by epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from isoviz import __version__, devices
from isoviz.config import RunConfig
from isoviz.errors import DivergedError
from isoviz.events import (
    Checkpointed,
    Entered,
    Evaluated,
    Event,
    Finished,
    Measured,
    Resumed,
    Started,
    Stepped,
    Stopped,
)
from isoviz.methods.protocol import Representations, TrainingSample
from isoviz.tasks import metrics, outcomes
from isoviz.training import (
    checkpoints,
    measuring,
    memory,
    predictions,
    processes,
    sharding,
    shrinkage,
    tracking,
    weights,
)
from isoviz.training.checkpoints import Epoch, Position
from isoviz.training.evaluation import Evaluator, fit_frozen
from isoviz.training.setup import Setup

MAX_STEP_EVENTS = 400
"""Steps reported per run, but at least one in 20: enough for a smooth curve on any screen."""

_LOWER = "Try a lower learning rate or a longer warm-up."
_VALIDATION = "validation"
"""The name of the mean task loss over the validation rows."""

Emit = Callable[[Event], None]
ShouldStop = Callable[[], bool]


def _ignore(event: Event) -> None:
    """With several processes, only the main one reports."""


def _continued(damage: Sequence[str], step: int) -> str:
    position = f"continued from step {step}" if step else "started again from the beginning"
    return "; ".join([*damage, position]) if damage else ""


class _StopRequestedError(Exception):
    """Aborts the current computation after the user's request to stop."""


def train(config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, resume: bool = False) -> None:
    """Fine-tune, reporting through `emit`; the last event is `Finished` or `Stopped`.

    This process trains, alone or with the others that `accelerate launch` started; of these, only the main one reports.

    Args:
        config: resolved (`isoviz.runs.planning`); `precision="auto"` counts as float32.
        emit: called with every event in order, only from this thread. When it returns from `Entered("saving")`, all previous
            events must be stored: a run that resumes from the checkpoint does not report them again.
        should_stop: called between batches; True ends the run with a checkpoint after the current optimiser step.
        run_dir: folder for arrays and checkpoints.
        resume: continue from the newest undamaged checkpoint in `run_dir` (from the start if there is none).

    Raises:
        IsoVizError: unusable model, task or parameters; DivergedError for a non-finite loss term.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    parts = math.ceil(config.batch_size / (config.micro_batch or config.batch_size))
    while parts := _attempt(config, emit, should_stop, run_dir, resume, parts):
        memory.free()
        resume = True


def _attempt(config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, resume: bool, parts: int) -> int:
    """Run with each batch split into `parts`; returns 0, or after an out-of-memory error the next number of parts. Frees all memory."""
    emit = emit if processes.begin() else _ignore
    began = time.perf_counter()

    def check() -> None:
        if should_stop():
            raise _StopRequestedError

    try:
        setup = Setup(config, run_dir, parts, resume, emit, check)
    except _StopRequestedError:
        emit(Stopped(step=weights.newest_step(run_dir)))
        return 0
    try:
        with tracking.reporting(config, run_dir, emit, here=setup.accelerator.is_main_process) as also_tracked:
            _Run(setup, also_tracked, should_stop, began).run(resume)
    except (RuntimeError, MemoryError) as error:
        if not memory.is_short(error):
            raise
        parts = memory.more_parts(parts, config, setup.together, setup.accelerator.num_processes)
        emit(Entered(phase="loading", detail=f"Out of memory. Retrying with each batch split in {parts}."))
        return parts
    return 0


class _Run:
    """A loaded run in this process, until it ends.

    Attributes:
        setup: task, model, rows and optimiser.
        progress: the run's position, saved in checkpoints with the tensors.
        generators: the checkpoint's random generators, until the first step after a resume.
        began: start of loading (`time.perf_counter`).
        startup_seconds: seconds from then to the first step.
        session_steps, session_rows, session_seconds: work of this process and its time.
        saved: time of the last checkpoint, or start of training (`time.perf_counter`).
    """

    def __init__(self, setup: Setup, emit: Emit, should_stop: ShouldStop, began: float) -> None:
        self.setup = setup
        self.emit = emit
        self.should_stop = should_stop
        self.progress = Position()
        self.generators: dict[str, torch.Tensor] | None = None
        self.began = began
        self.startup_seconds = 0.0
        self.session_steps = 0
        self.session_rows = 0
        self.session_seconds = 0.0
        self.saved = time.perf_counter()
        self.evaluator = Evaluator(setup.plain, setup.head, setup.rows, setup.accelerator, self.check)

    def run(self, resume: bool) -> None:
        """Train and measure epoch by epoch, until the run is over or a stop is requested."""
        try:
            self.start(resume)
            while True:
                if self.progress.measured < self.progress.epoch:
                    self.measure()
                if self.progress.is_over(self.setup.config):
                    break
                self.train_epoch()
            if self.setup.method.frozen_stage and not self.progress.fitted:
                self.fit_frozen()
                self.measure()
            self.finish()
        except _StopRequestedError:
            self.stop()

    def start(self, resume: bool) -> None:
        """Load the newest undamaged checkpoint when resuming, and report the run's environment."""
        setup, rows = self.setup, self.setup.rows
        if resume:
            checkpoint = checkpoints.newest_valid(setup.run_dir) if setup.accelerator.is_main_process else (None, [])
            folder, damage = processes.broadcast(checkpoint)
            if folder is not None:
                self.progress, self.generators = checkpoints.load(folder, setup)
            self.emit(
                Resumed(
                    step=self.progress.step,
                    epoch=self.progress.epoch,
                    warning=_continued(damage, self.progress.step),
                )
            )
        self.startup_seconds = time.perf_counter() - self.began
        self.emit(
            Started(
                device=str(setup.accelerator.device),
                precision=str(setup.accelerator.mixed_precision),
                threads=torch.get_num_threads(),
                total_steps=setup.fine_tuning_steps + setup.frozen_steps,
                steps_per_epoch=setup.steps_per_epoch,
                train_rows=rows.train_count,
                eval_rows=len(rows.frame),
                parameters=sum(p.numel() for p in setup.plain.parameters()),
                trainable_parameters=sum(p.numel() for p in setup.plain.parameters() if p.requires_grad),
                first_step=self.progress.step,
                startup_seconds=self.startup_seconds,
                data_fingerprint=setup.provenance.data,
                model_fingerprint=setup.provenance.model,
                model_revision=setup.provenance.revision,
                data_revision=setup.data_revision,
                signatures=metrics.signature(setup.task.metrics),
                versions={
                    "isoviz": __version__,
                    **{name: version(name) for name in ("torch", "transformers", "accelerate")},
                },
                baselines=outcomes.reference_values(setup.task, rows.guess),
                notes=[
                    *([f"random weights: {setup.random_weights}"] if setup.random_weights else []),
                    *setup.notes,
                ],
            )
        )

    # ---- training ----------------------------------------------------------------------------------------------

    def train_epoch(self) -> None:
        setup, progress = self.setup, self.progress
        self._enter_training()
        setup.rows.order.epoch, setup.rows.order.start = progress.epoch, progress.batch
        if progress.batch == 0:
            with torch.no_grad(), sharding.whole(setup.plain):
                setup.plain.eval()
                setup.method.refresh(TrainingSample(progress.epoch, self._training_sample, processes.gather))
        setup.model.train()
        if self.generators is not None:
            devices.set_generator_states(self.generators)
            self.generators = None
        sums: dict[str, float] = {}
        batches = 0  # batches of the current optimiser step
        clock = time.perf_counter()
        for batch, rows in zip(setup.loader, setup.rows.order.sizes(), strict=True):
            if batches == 0 and self._stopped_or_saved():
                clock = time.perf_counter()
            del batch["item"]
            with setup.accelerator.accumulate(setup.model):
                terms = memory.backward(
                    setup.model,
                    batch,
                    setup.parts,
                    setup.accelerator,
                    per_token=setup.task.kind == "seq2seq",
                    together=setup.together,
                )
                setup.optimizer.step()
                stepped = setup.accelerator.sync_gradients
                if stepped:
                    setup.scheduler.step()
                setup.optimizer.zero_grad()
            values = setup.accelerator.reduce(torch.stack(list(terms.values())), reduction="mean").tolist()
            losses = dict(zip(terms, values, strict=True))
            check_losses(losses, progress.step + 1, setup.method.title)
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value
            batches += 1
            progress.batch += 1
            progress.rows += rows
            self.session_rows += rows
            if not stepped:
                continue
            now = time.perf_counter()
            progress.train_seconds += now - clock
            self.session_seconds += now - clock
            self.session_steps += 1
            clock = now
            progress.step += 1
            self._report({name: value / batches for name, value in sums.items()})
            sums, batches = {}, 0
        progress.epoch += 1
        progress.batch = 0
        self._checkpoint()

    def _enter_training(self) -> None:
        self.emit(Entered(phase="training", detail=f"epoch {self.progress.epoch + 1} of {self.setup.config.epochs}"))

    def _stopped_or_saved(self) -> bool:
        """Between two optimiser steps: end the run if requested, else write a checkpoint if one is due.

        Returns whether a checkpoint was written.
        """
        seconds = 60 * self.setup.config.checkpoint_minutes
        due = seconds > 0 and time.perf_counter() - self.saved >= seconds
        match processes.broadcast("stop" if self.should_stop() else "save" if due else ""):
            case "stop":
                raise _StopRequestedError
            case "save":
                self._checkpoint()
                self._enter_training()
                return True
        return False

    def _report(self, losses: dict[str, float]) -> None:
        setup, progress = self.setup, self.progress
        every = max(1, min(setup.fine_tuning_steps // MAX_STEP_EVENTS, 20))
        if progress.step % every and progress.step % setup.steps_per_epoch and progress.step != 1:
            return
        pace = self.session_seconds / max(1, self.session_rows)
        rows_left = len(setup.rows.order.lengths) * setup.config.epochs - progress.rows
        self.emit(
            Stepped(
                step=progress.step,
                epoch=progress.step / setup.steps_per_epoch,
                losses=losses,
                learning_rate=setup.scheduler.get_last_lr()[0],
                samples_per_second=1 / pace if pace else 0.0,
                eta_seconds=max(0.0, rows_left * pace),
                step_seconds=self.session_seconds / self.session_steps,
            )
        )

    def fit_frozen(self) -> None:
        """The method's second stage, reported as another epoch. A stop keeps the last epoch's checkpoint unchanged."""
        setup, progress = self.setup, self.progress
        self.emit(Entered(phase="training", detail=setup.method.frozen_stage))
        first, every = progress.step, max(1, min(setup.frozen_steps // MAX_STEP_EVENTS, 20))

        def report(event: Stepped) -> None:
            check_losses(event.losses, progress.step + 1, setup.method.title)
            if (event.step - first) % every == 0 or event.step == first + 1:
                self.emit(event)

        began = time.perf_counter()
        progress.step += fit_frozen(
            self.evaluator,
            setup.method,
            report,
            step=first,
            epoch=progress.epoch,
            most_steps=max(1, setup.frozen_steps),
        )
        progress.train_seconds += time.perf_counter() - began
        progress.epoch += 1
        progress.fitted = True
        self._checkpoint()

    def _training_sample(self, tokens: int) -> Iterator[Representations]:
        for _, batch in self.evaluator.batches(self.setup.rows.sample(tokens)):
            with torch.no_grad(), self.setup.accelerator.autocast():
                yield self.setup.plain.represent(**batch)

    # ---- measuring ---------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Evaluate and measure the current weights, as the next entry of the history."""
        with sharding.whole(self.setup.plain):
            self._measure()

    def _measure(self) -> None:
        setup, progress = self.setup, self.progress
        self.emit(Entered(phase="evaluating", detail=f"epoch {progress.epoch}"))
        check_weights(setup.plain, progress.step)
        began = time.perf_counter()
        validated = self.evaluator.validate(setup.config.probe_size)
        check_losses({_VALIDATION: validated.loss}, progress.step, setup.method.title)
        answers = setup.head.answers(setup.rows.frame, setup.rows.validation, validated.predictions)
        evaluated = Evaluated(
            step=progress.step,
            epoch=progress.epoch,
            loss=validated.loss,
            metrics=setup.head.evaluate(setup.rows.frame, answers)
            | setup.head.evaluate_widths(setup.rows.frame, setup.rows.validation, validated.predictions)
            | self.evaluator.extra_metrics(),
            primary=setup.task.primary,
            collapsed=outcomes.collapse(setup.task, setup.rows.frame, answers.values),
        )
        self.emit(evaluated)
        ended = time.perf_counter()
        progress.evaluate_seconds += ended - began - validated.cloud_seconds
        self.emit(Entered(phase="measuring", detail=f"epoch {progress.epoch}"))
        arrays = f"arrays/epoch-{progress.epoch:03d}.safetensors"
        # for small d × d matrices, synchronising BLAS threads costs more than it saves
        with threadpool_limits(limits=1, user_api="blas"):
            isotropy = measuring.measurement(
                validated,
                shrinkage.estimate(self.evaluator),
                sharding.own_copy(setup.plain.output.weight),
                setup.run_dir / arrays if setup.accelerator.is_main_process else None,
                setup.config.prefixes,
            )
        progress.measure_seconds += time.perf_counter() - ended + validated.cloud_seconds
        measured = Measured(
            step=progress.step, epoch=progress.epoch, isotropy=isotropy, arrays=arrays, timing=progress.timing
        )
        self.emit(measured)
        progress.history.append(Epoch(evaluated=evaluated, measured=measured))
        if (
            setup.accelerator.is_main_process
            and progress.reported(setup.config, setup.task.primary) is progress.history[-1]
        ):
            predictions.save(setup.run_dir, setup.task, setup.rows.frame, answers, progress.epoch)
        progress.measured = progress.epoch

    # ---- ending ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        setup = self.setup
        if not setup.accelerator.is_main_process:
            return
        checkpoints.keep_final_weights(setup.run_dir, self.progress, self._best_step())
        reported = self.progress.reported(setup.config, setup.task.primary)
        evaluated, measured, seconds = reported.evaluated, reported.measured, self.progress.train_seconds
        self.emit(
            Finished(
                metrics={**evaluated.metrics, "loss": evaluated.loss, "epoch": measured.epoch},
                isotropy=measured.isotropy,
                timing={
                    **self.progress.timing,
                    "seconds_per_epoch": seconds / max(1, self.progress.epoch),
                    "samples_per_second": self.progress.rows / seconds if seconds else None,
                    "startup_seconds": self.startup_seconds,
                    "total_seconds": time.perf_counter() - self.began,
                },
                weights=weights.saved(setup.run_dir),
                collapsed=evaluated.collapsed,
                random_weights=setup.random_weights,
            )
        )

    def stop(self) -> None:
        if self.progress.measured >= 0:  # before the first measurement there is nothing to save
            self._checkpoint()
        self.emit(Stopped(step=weights.newest_step(self.setup.run_dir)))

    def check(self) -> None:
        # several processes stop only between steps, because their parts of a pass differ in length
        if self.setup.accelerator.num_processes == 1 and self.should_stop():
            raise _StopRequestedError

    def _best_step(self) -> int | None:
        # a second stage starts from the last epoch, so earlier weights are not needed
        if self.setup.method.frozen_stage:
            return None
        return self.progress.best_step(self.setup.config, self.setup.task.primary)

    def _checkpoint(self) -> None:
        setup = self.setup
        self.emit(Entered(phase="saving"))
        folder = checkpoints.save(setup, self.progress, self._best_step())
        self.saved = time.perf_counter()
        path = str(folder.relative_to(setup.run_dir))
        self.emit(Checkpointed(step=self.progress.step, epoch=self.progress.epoch, path=path))


# ---- not a number ------------------------------------------------------------------------------------------------


def check_losses(losses: Mapping[str, float], step: int, method: str) -> None:
    """Check that all loss terms are finite.

    Args:
        step: the optimiser step, from 1.
        method: title of the method, for the advice.

    Raises:
        DivergedError: the first non-finite term.
    """
    for name, value in losses.items():
        if not math.isfinite(value):
            advice = (
                _LOWER
                if name in ("task", "total", _VALIDATION)
                else f"Try a weaker {method} (parameter nearer to 0) or a lower learning rate."
            )
            raise DivergedError(name, step, advice)


def check_weights(model: nn.Module, step: int) -> None:
    """Check that all weights and running statistics of a model are finite; arguments and error as for `check_losses`."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            advice = _LOWER if step else "They are already in the checkpoint: use another one."
            raise DivergedError(name.removeprefix("network."), step, advice, what="the weights of")
