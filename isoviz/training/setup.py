"""Everything a run trains with: task, method, rows, model and optimiser, loaded on the device before the first step."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Entered, Event
from isoviz.methods.protocol import Method
from isoviz.models import hub, sources, tokenizer_limits
from isoviz.models.adapter import HeadedModel, load_tokenizer
from isoviz.tasks import report
from isoviz.tasks.protocol import TRAIN, VALIDATION
from isoviz.training import heads, sharding, weights
from isoviz.training.evaluation import EncodedSplits
from isoviz.training.optimisation import make_optimizer, make_scheduler
from isoviz.training.processes import on_cpu
from isoviz.training.reload import build


class Setup:
    """All parts of a loaded run. After creation, only the weights and the optimiser's state change.

    Attributes:
        config, run_dir: the run's configuration and folder.
        task, method, head, rows: task, method, output layer and data.
        provenance: fingerprints of the model and the rows.
        random_weights: description of encoder weights missing in the checkpoint; empty if none.
        notes: what a reader of the results must know about rows and tokens, as sentences.
        data_revision: commit of a hub data set.
        accelerator: the device, the precision and the processes.
        model: the network prepared by accelerate, for training steps.
        plain: the same network without accelerate's wrapper.
        loader: the training batches.
        optimizer, scheduler: prepared by accelerate.
        parts: number of parts of each batch (`memory`).
        steps_per_epoch: optimiser steps.
        frozen_steps: most steps of the method's second stage.
    """

    def __init__(
        self,
        config: RunConfig,
        run_dir: Path,
        parts: int,
        resume: bool,
        emit: Callable[[Event], None],
        check: Callable[[], None],
    ) -> None:
        """Load everything that a run needs, and report slow steps.

        Args:
            parts: number of parts of each batch.
            resume: require the same model and rows as at the run's start.
            check: called between steps; raises to abort.

        Raises:
            IsoVizError: an unusable model, task or parameter, or a model or data that has changed since the run began.
        """
        self.config, self.run_dir, self.parts = config, run_dir, parts

        def report_download(done: int, total: int, text: str) -> None:
            check()
            emit(Entered(phase="loading", detail=hub.in_words(done, total, text)))

        def report_rows(done: int, total: int) -> None:
            check()
            emit(Entered(phase="tokenising", detail=f"{done:,} of {total:,} rows"))

        emit(Entered(phase="loading", detail=config.model))
        self.task = task = tasks.get(config.task, config.own)
        methods.get(config.method).check_kind(task.kind)
        earlier = weights.find_provenance(run_dir) if resume else None
        source = sources.resolve(config.model, task.kind, earlier.revision if earlier else None)
        source = sources.fetch(source, report_download)
        data = tasks.load(task, config.data, config.direction, config.max_train, config.max_eval)
        if earlier:
            earlier.check(source, data.fingerprint)
        check()
        self.head = heads.head_for(task, load_tokenizer(source, config.direction), config)
        self.accelerator = Accelerator(
            cpu=on_cpu(),
            mixed_precision="no" if config.precision == "auto" else config.precision,
            gradient_accumulation_steps=config.grad_accum,
            step_scheduler_with_optimizer=False,
        )
        rank, count = self.accelerator.process_index, self.accelerator.num_processes
        model, mismatch = build(config, source, self.head, config.allow_random)
        self.method: Method = model.hooks  # type: ignore[assignment]
        check()

        emit(Entered(phase="tokenising", detail=f"{len(data.train)} + {len(data.validation)} rows"))
        self.rows = EncodedSplits(data, self.head, config, (rank, count), parts, report_rows)
        unknown = tokenizer_limits.unknown_share(self.rows.train.inputs["input_ids"], self.head.tokenizer)
        if unknown > tokenizer_limits.REFUSED and not config.allow_unknown:
            raise InputError(
                f"model: the tokenizer of '{config.model}' does not know {unknown:.0%} of the tokens in the training rows",
                field="model",
                advice="Choose a model of the rows' language, or train anyway with --allow-unknown.",
            )
        if len(self.rows.train) < count:
            raise InputError(
                f"processes: {count} need as many training rows (got {len(self.rows.train)})", field="processes"
            )
        self.head.prepare(model, self.rows.train)
        self.steps_per_epoch = math.ceil(len(self.rows.order) / config.grad_accum)
        self.frozen_steps = self.method.frozen_steps(len(self.rows.train))
        # evaluation mode moves the model without wrapping it
        self.model: torch.nn.Module = self.accelerator.prepare_model(model, evaluation_mode=sharding.wanted())
        if sharding.wanted():
            sharding.shard(model, config)
        table = model.network.get_input_embeddings() if count == 1 else None
        optimizer = make_optimizer(model, config, table if isinstance(table, torch.nn.Embedding) else None)
        scheduler = make_scheduler(optimizer, config, self.fine_tuning_steps)
        self.optimizer: torch.optim.Optimizer
        self.scheduler: Any
        self.optimizer, self.scheduler = self.accelerator.prepare(optimizer, scheduler)
        # as for a single process, because the rows are already divided
        self.loader = prepare_data_loader(
            self.rows.loader, self.accelerator.device, num_processes=1, process_index=0, put_on_device=True
        )
        # dropout's generator, different in each process; data order and new weights use separate ones
        torch.manual_seed(config.seed + 1_000_003 * rank)
        self.plain: HeadedModel = self.accelerator.unwrap_model(self.model)
        self.provenance = weights.Provenance(
            source.fingerprint, source.revision, data.fingerprint, self.head.generation
        )
        if not earlier and self.accelerator.is_main_process:
            weights.save_provenance(run_dir, self.provenance)
        self.data_revision = data.revision
        self.random_weights = str(mismatch)
        self.notes = [
            *report.score_notes(task, {TRAIN: data.train, VALIDATION: data.validation, **data.extra}),
            *tokenizer_limits.unknown_note(unknown),
            *tokenizer_limits.pair_note(self.head.tokenizer, len(task.inputs)),
        ]

    @property
    def together(self) -> bool:
        """Whether anything in the loss depends on which rows share a batch."""
        return self.method.of_rows_together or self.head.together > 1

    @property
    def fine_tuning_steps(self) -> int:
        """Optimiser steps of all epochs."""
        return self.steps_per_epoch * self.config.epochs
