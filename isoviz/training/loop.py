"""One fine-tuning run, read top to bottom: load, measure, then train and measure epoch by epoch."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import torch
from accelerate import Accelerator
from threadpoolctl import threadpool_limits

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.events import (
    Checkpointed,
    Entered,
    Evaluated,
    Event,
    Measured,
    Resumed,
    Started,
    Stepped,
    Stopped,
)
from isoviz.methods.protocol import Representations, Sample
from isoviz.models import hub, sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.tasks import baselines, metrics
from isoviz.training import (
    checkpoints,
    divergence,
    extra_splits,
    heads,
    measuring,
    memory,
    origin,
    outcome,
    predictions,
    processes,
    second_stage,
    weights,
)
from isoviz.training.checkpoints import Epoch, Progress
from isoviz.training.optimisation import make_optimizer, make_scheduler
from isoviz.training.processes import Processes
from isoviz.training.rows import Rows
from isoviz.training.second_stage import Stage

MAX_STEP_EVENTS = 400
"""Steps reported per run, unless that would be fewer than one in 20: enough for a smooth curve on any screen."""

Emit = Callable[[Event], None]
ShouldStop = Callable[[], bool]


def _ignore(event: Event) -> None:
    """Of several processes only the main one reports."""


class _StopRequestedError(Exception):
    """Leaves whatever is being computed when the user asked to stop."""


def train(config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, resume: bool = False) -> None:
    """Fine-tune, reporting through `emit`; the last event is `Finished` or `Stopped`.

    Args:
        config: resolved (`isoviz.runs.planning`); `precision="auto"` counts as float32.
        emit: called in order with every event, from this thread only.
        should_stop: asked between batches; True ends the run with a checkpoint.
        run_dir: folder for arrays and checkpoints.
        resume: go on from the newest checkpoint in `run_dir` (from the start if there is none).

    Raises:
        IsoVizError: model, task or parameters that cannot be used; DivergedError for a non-finite loss term.
    """
    if config.threads:
        torch.set_num_threads(config.threads)
    parts = 1
    while parts := _attempt(config, emit, should_stop, run_dir, resume, parts):
        memory.free()
        resume = True


def _attempt(config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, resume: bool, parts: int) -> int:
    """The run with each batch in `parts`; returns 0, or where memory is short how many parts to go on with. All is let go."""
    emit = emit if processes.begin() else _ignore
    run = _Run(config, emit, should_stop, run_dir, parts)
    try:
        run.load(resume)
        while True:
            if run.progress.measured < run.progress.epoch:
                run.measure()
            if outcome.is_over(config, run.progress):
                break
            run.train_epoch()
        if run.method.frozen_stage and not run.progress.fitted:
            run.fit_frozen()
            run.measure()
        run.finish()
    except _StopRequestedError:
        run.stop()
    except (RuntimeError, MemoryError) as error:
        if not (run.ready and memory.is_short(error)):
            raise
        parts = memory.more_parts(parts, config, type(run.method), run.processes.count)
        emit(Entered(phase="loading", detail=f"the memory did not suffice: again, each batch in {parts} parts"))
        return parts
    return 0


class _Run:
    """The state of one run in this process."""

    def __init__(self, config: RunConfig, emit: Emit, should_stop: ShouldStop, run_dir: Path, parts: int) -> None:
        self.config = config
        self.emit = emit
        self.should_stop = should_stop
        self.run_dir = run_dir
        self.parts = parts
        self.began = time.perf_counter()
        self.progress = Progress()
        self.pending_generators: dict[str, torch.Tensor] | None = None
        self.session_rows = 0
        self.session_seconds = 0.0
        self.startup_seconds = 0.0
        self.ready = False

    # ---- loading -----------------------------------------------------------------------------------------------

    def downloading(self, done: int, total: int, text: str) -> None:
        self.check()
        self.emit(Entered(phase="loading", detail=hub.in_words(done, total, text)))

    def tokenising(self, done: int, total: int) -> None:
        self.check()
        self.emit(Entered(phase="tokenising", detail=f"{done:,} of {total:,} rows"))

    def load(self, resume: bool) -> None:
        config = self.config
        self.emit(Entered(phase="loading", detail=config.model))
        self.task = tasks.get(config.task, config.own)
        self.method = methods.get(config.method)(methods.get(config.method).Params(**config.params))
        self.method.check_kind(self.task.kind)
        begun = origin.find(self.run_dir) if resume else None
        commit = begun.revision if begun else None
        source = sources.fetch(sources.resolve(config.model, self.task.kind, commit), self.downloading)
        data = tasks.load(self.task, config.data, config.direction, config.max_train, config.max_eval)
        if begun:
            begun.check(source, data.fingerprint)
        self.check()
        self.head = heads.of(self.task, load_tokenizer(source, config.direction), config)
        self.accelerator = Accelerator(
            cpu=processes.on_cpu(),
            mixed_precision="no" if config.precision == "auto" else config.precision,
            gradient_accumulation_steps=config.grad_accum,
            step_scheduler_with_optimizer=False,
        )
        self.processes = Processes(self.accelerator)
        part = (self.processes.rank, self.processes.count)
        network = load_network(source, self.head.num_labels, config.seed, self.task.kind)
        model = HeadedModel(network, self.method, self.task.kind)
        self.check()

        self.emit(Entered(phase="tokenising", detail=f"{len(data.train)} + {len(data.validation)} rows"))
        self.rows = rows = Rows(data, self.head, config, part, self.parts, self.tokenising)
        self.head.prepare(model, rows.train)
        self.steps_per_epoch = math.ceil(math.ceil(len(rows.order) / self.processes.count) / config.grad_accum)
        self.total_steps = self.steps_per_epoch * config.epochs
        self.frozen_steps = self.method.frozen_steps(len(rows.train))
        self.report_every = max(1, min(self.total_steps // MAX_STEP_EVENTS, 20))

        optimizer = make_optimizer(model, config)
        scheduler = make_scheduler(optimizer, config, self.total_steps)
        self.model, self.optimizer, self.loader, self.scheduler = self.accelerator.prepare(
            model, optimizer, rows.loader, scheduler
        )
        self.plain: HeadedModel = self.accelerator.unwrap_model(self.model)
        # dropout's generator, another one in each process; data order and new weights have their own
        torch.manual_seed(config.seed + 1_000_003 * self.processes.rank)
        self.ready = True
        if not begun and self.processes.is_main:
            origin.keep(self.run_dir, origin.Origin(source.fingerprint, source.revision, data.fingerprint))
        if resume:
            self._restore()
        self.startup_seconds = time.perf_counter() - self.began
        self.emit(
            Started(
                device=str(self.accelerator.device),
                precision=str(self.accelerator.mixed_precision),
                threads=torch.get_num_threads(),
                total_steps=self.total_steps + self.frozen_steps,
                steps_per_epoch=self.steps_per_epoch,
                train_rows=rows.train_count,
                eval_rows=len(rows.frame),
                parameters=sum(p.numel() for p in self.plain.parameters()),
                first_step=self.progress.step,
                startup_seconds=self.startup_seconds,
                data_fingerprint=data.fingerprint,
                model_fingerprint=source.fingerprint,
                model_revision=source.revision,
                data_revision=data.revision,
                signatures=metrics.signature(self.task.metrics),
                versions={name: version(name) for name in ("torch", "transformers", "accelerate")},
                baselines=baselines.of(self.task, rows.guess),
            )
        )

    def _restore(self) -> None:
        folder = checkpoints.newest(self.run_dir)
        if folder is not None:
            self.progress, self.pending_generators = checkpoints.load(
                folder, self.plain, self.optimizer, self.scheduler, self.processes
            )
        self.emit(Resumed(step=self.progress.step, epoch=self.progress.epoch))

    # ---- training ----------------------------------------------------------------------------------------------

    def train_epoch(self) -> None:
        config, progress = self.config, self.progress
        self.emit(Entered(phase="training", detail=f"epoch {progress.epoch + 1} of {config.epochs}"))
        self.rows.order.epoch, self.rows.order.start = progress.epoch, progress.batch * self.processes.count
        if progress.batch == 0:
            with torch.no_grad():
                self.plain.eval()
                self.method.refresh(Sample(progress.epoch, self._training_sample, self.processes.gather))
        self.model.train()
        if self.pending_generators is not None:
            checkpoints.set_generators(self.pending_generators)
            self.pending_generators = None
        sums: dict[str, float] = {}
        parts = 0
        clock = time.perf_counter()
        for batch in self.loader:
            if parts == 0 and self.processes.agree(self.should_stop()):
                raise _StopRequestedError
            rows = len(batch.pop("item")) * self.processes.count
            with self.accelerator.accumulate(self.model):
                terms = memory.backward(self.model, batch, self.parts, self.task.kind == "seq2seq", self.accelerator)
                self.optimizer.step()
                stepped = self.accelerator.sync_gradients
                if stepped:
                    self.scheduler.step()
                self.optimizer.zero_grad()
            values = self.processes.mean(torch.stack(list(terms.values()))).tolist()
            losses = dict(zip(terms, values, strict=True))
            divergence.check(losses, progress.step + 1, self.method.title)
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + value
            parts += 1
            progress.batch += 1
            progress.rows += rows
            self.session_rows += rows
            if not stepped:
                continue
            now = time.perf_counter()
            progress.train_seconds += now - clock
            self.session_seconds += now - clock
            clock = now
            progress.step += 1
            self._report({name: value / parts for name, value in sums.items()})
            sums, parts = {}, 0
        progress.epoch += 1
        progress.batch = 0
        self._checkpoint()

    def _report(self, losses: dict[str, float]) -> None:
        progress = self.progress
        if progress.step % self.report_every and progress.step % self.steps_per_epoch and progress.step != 1:
            return
        pace = self.session_seconds / max(1, self.session_rows)
        rows_left = len(self.rows.train) * self.config.epochs - progress.rows
        self.emit(
            Stepped(
                step=progress.step,
                epoch=progress.step / self.steps_per_epoch,
                losses=losses,
                learning_rate=self.scheduler.get_last_lr()[0],
                samples_per_second=1 / pace if pace else 0.0,
                eta_seconds=rows_left * pace,
            )
        )

    def fit_frozen(self) -> None:
        """The method's second stage, reported as one more epoch. A stop leaves the last epoch's checkpoint as it is."""
        progress = self.progress
        self.emit(Entered(phase="training", detail=self.method.frozen_stage))
        first, every = progress.step, max(1, min(self.frozen_steps // MAX_STEP_EVENTS, 20))

        def told(event: Stepped) -> None:
            divergence.check(event.losses, progress.step + 1, self.method.title)
            if (event.step - first) % every == 0 or event.step == first + 1:
                self.emit(event)

        began = time.perf_counter()
        progress.step += second_stage.fit(
            self.plain,
            self.rows.sample(None),
            self.accelerator,
            self.processes.gather,
            self.head,
            self.config.seed,
            Stage(first, progress.epoch, max(1, self.frozen_steps)),
            told,
            self.check,
        )
        progress.train_seconds += time.perf_counter() - began
        progress.epoch += 1
        progress.fitted = True
        self._checkpoint()

    def _training_sample(self, tokens: int) -> Iterator[Representations]:
        """What `Sample.representations` gives."""
        self.plain.eval()
        for batch in self.rows.sample(tokens):
            self.check()
            batch = {name: value.to(self.accelerator.device) for name, value in batch.items() if name != "item"}
            with torch.no_grad(), self.accelerator.autocast():
                yield self.plain.represent(**batch)

    # ---- measuring ---------------------------------------------------------------------------------------------

    def measure(self) -> None:
        progress = self.progress
        self.emit(Entered(phase="evaluating", detail=f"epoch {progress.epoch}"))
        found = measuring.run_pass(
            self.plain,
            self.head,
            self.rows.validation,
            self.rows.evaluation,
            self.accelerator,
            self.processes.gather,
            self.config.probe_size,
            self.config.seed,
            self.check,
        )
        answers = self.head.answers(self.rows.frame, self.rows.validation, found.predictions)
        values = self.head.evaluate(self.rows.frame, answers)
        values |= extra_splits.metrics(
            self.plain, self.head, self.rows.extra, self.accelerator, self.processes.gather, self.check
        )
        evaluated = Evaluated(
            step=progress.step, epoch=progress.epoch, loss=found.loss, metrics=values, primary=self.task.primary
        )
        self.emit(evaluated)
        self.emit(Entered(phase="measuring", detail=f"epoch {progress.epoch}"))
        # d × d matrices are small: BLAS threads that wait for each other cost more than they bring
        with threadpool_limits(limits=1, user_api="blas"):
            measured = self._measured(found)
        self.emit(measured)
        progress.history.append(Epoch(evaluated=evaluated, measured=measured))
        if (
            self.processes.is_main
            and outcome.reported(self.config, progress, self.task.primary) is progress.history[-1]
        ):
            predictions.save(self.run_dir, self.task, self.rows.frame, answers, progress.epoch)
        progress.measured = progress.epoch

    def _measured(self, found: measuring.Pass) -> Measured:
        progress = self.progress
        sample = self.rows.sample(measuring.SHRINKAGE_POINTS // self.plain.num_layers)
        sigma = measuring.shrinkage(self.plain, sample, self.accelerator, self.processes.gather, self.check)
        arrays = f"arrays/epoch-{progress.epoch:03d}.safetensors"
        folder = self.run_dir if self.processes.is_main else None
        weight, step, epoch = self.plain.output.weight, progress.step, progress.epoch
        return measuring.measured(found, sigma, weight, step=step, epoch=epoch, arrays=arrays, folder=folder)

    # ---- ending ------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        if not self.processes.is_main:
            return
        checkpoints.settle(self.run_dir, self.progress, self._best_step())
        kept = weights.kept(self.run_dir)
        seconds = time.perf_counter() - self.began
        self.emit(outcome.finished(self.config, self.progress, self.task.primary, kept, self.startup_seconds, seconds))

    def stop(self) -> None:
        if self.ready:
            self._checkpoint()
        folder = checkpoints.newest(self.run_dir)
        self.emit(Stopped(step=self.progress.step if folder is not None else 0))

    def check(self) -> None:
        # several processes stop together, between steps: their parts of a pass differ in length
        if (not self.ready or self.processes.count == 1) and self.should_stop():
            raise _StopRequestedError

    def _best_step(self) -> int | None:
        # a second stage starts from the last epoch: no earlier one's weights will be asked for
        return None if self.method.frozen_stage else outcome.best_step(self.config, self.progress, self.task.primary)

    def _checkpoint(self) -> None:
        self.emit(Entered(phase="saving"))
        folder = checkpoints.save(
            self.run_dir, self.progress, self.plain, self.optimizer, self.scheduler, self.processes, self._best_step()
        )
        self.emit(
            Checkpointed(step=self.progress.step, epoch=self.progress.epoch, path=str(folder.relative_to(self.run_dir)))
        )
