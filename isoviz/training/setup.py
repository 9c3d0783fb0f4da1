"""Everything a run trains with: task, method, rows, model and optimiser, loaded on the device before the first step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.data_loader import prepare_data_loader
from torch.utils.data import DataLoader

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.events import Entered, Event
from isoviz.methods.protocol import Method
from isoviz.models import hub, low_rank, sources, unknown_tokens
from isoviz.models.adapter import HeadedModel, load_network_with_mismatch, load_tokenizer
from isoviz.tasks import report
from isoviz.tasks.protocol import TRAIN, VALIDATION, Task
from isoviz.training import heads, origin, sharding
from isoviz.training.batches import Rows
from isoviz.training.heads import Head
from isoviz.training.optimisation import make_optimizer, make_scheduler
from isoviz.training.origin import Origin
from isoviz.training.processes import Processes, on_cpu


@dataclass(frozen=True)
class Setup:
    """All parts of a loaded run. After creation, only the weights and the optimiser's state change.

    Attributes:
        config, run_dir: the run's configuration and folder.
        task, method, head, rows: task, method, output layer and data.
        origin: fingerprints of the model and the rows.
        random_weights: description of encoder weights missing in the checkpoint; empty if none.
        notes: what a reader of the results must know about rows and tokens, as sentences.
        data_revision: commit of a hub data set.
        accelerator, processes: devices and processes.
        model: the network prepared by accelerate, for training steps.
        plain: the same network without accelerate's wrapper.
        loader: the training batches.
        optimizer, scheduler: prepared by accelerate.
        parts: number of parts of each batch (`memory`).
        steps_per_epoch: optimiser steps.
        frozen_steps: most steps of the method's second stage.
    """

    config: RunConfig
    run_dir: Path
    task: Task
    method: Method
    head: Head
    rows: Rows
    origin: Origin
    random_weights: str
    notes: list[str]
    data_revision: str | None
    accelerator: Accelerator
    processes: Processes
    model: torch.nn.Module
    plain: HeadedModel
    loader: DataLoader[dict[str, torch.Tensor]]
    optimizer: torch.optim.Optimizer
    scheduler: Any
    parts: int
    steps_per_epoch: int
    frozen_steps: int

    @property
    def fine_tuning_steps(self) -> int:
        """Optimiser steps of all epochs."""
        return self.steps_per_epoch * self.config.epochs


def load_setup(
    config: RunConfig,
    run_dir: Path,
    parts: int,
    resume: bool,
    emit: Callable[[Event], None],
    check: Callable[[], None],
) -> Setup:
    """Load everything that a run needs, and report slow steps.

    Args:
        parts: number of parts of each batch.
        resume: require the same model and rows as at the run's start.
        check: called between steps; raises to abort.

    Raises:
        IsoVizError: an unusable model, task or parameter, or a model or data that has changed since the run began.
    """

    def report_download(done: int, total: int, text: str) -> None:
        check()
        emit(Entered(phase="loading", detail=hub.in_words(done, total, text)))

    def report_rows(done: int, total: int) -> None:
        check()
        emit(Entered(phase="tokenising", detail=f"{done:,} of {total:,} rows"))

    emit(Entered(phase="loading", detail=config.model))
    task = tasks.get(config.task, config.own)
    method = methods.get(config.method)(methods.get(config.method).Params(**config.params))
    method.check_kind(task.kind)
    earlier_origin = origin.find(run_dir) if resume else None
    source = sources.fetch(
        sources.resolve(config.model, task.kind, earlier_origin.revision if earlier_origin else None), report_download
    )
    data = tasks.load(task, config.data, config.direction, config.max_train, config.max_eval)
    if earlier_origin:
        earlier_origin.check(source, data.fingerprint)
    check()
    head = heads.head_for(task, load_tokenizer(source, config.direction), config)
    accelerator = Accelerator(
        cpu=on_cpu(),
        mixed_precision="no" if config.precision == "auto" else config.precision,
        gradient_accumulation_steps=config.grad_accum,
        step_scheduler_with_optimizer=False,
    )
    processes = Processes(accelerator)
    network, mismatch = load_network_with_mismatch(
        source, head.num_labels, config.seed, task.kind, allow_random=config.allow_random
    )
    if config.low_rank is not None:
        low_rank.add(network, task.kind, config.low_rank, config.seed)
    model = HeadedModel(network, method, task.kind)
    check()

    emit(Entered(phase="tokenising", detail=f"{len(data.train)} + {len(data.validation)} rows"))
    rows = Rows(data, head, config, (processes.rank, processes.count), parts, report_rows)
    unknown = unknown_tokens.share(rows.train.inputs["input_ids"], head.tokenizer)
    if unknown > unknown_tokens.REFUSED and not config.allow_unknown:
        raise InputError(
            f"model: the tokenizer of '{config.model}' does not know {unknown:.0%} of the tokens in the training rows",
            field="model",
            advice="Choose a model of the rows' language, or train anyway with --allow-unknown.",
        )
    head.prepare(model, rows.train)
    steps_per_epoch = math.ceil(len(rows.order) / config.grad_accum)
    prepared = accelerator.prepare_model(
        model, evaluation_mode=sharding.wanted()
    )  # evaluation mode moves the model without wrapping it
    if sharding.wanted():
        sharding.shard(model, config)
    table = network.get_input_embeddings() if processes.count == 1 else None
    optimizer = make_optimizer(model, config, table if isinstance(table, torch.nn.Embedding) else None)
    scheduler = make_scheduler(optimizer, config, steps_per_epoch * config.epochs)
    optimizer, scheduler = accelerator.prepare(optimizer, scheduler)
    # as for a single process, because the rows are already divided
    loader = prepare_data_loader(rows.loader, accelerator.device, num_processes=1, process_index=0, put_on_device=True)
    # dropout's generator, different in each process; data order and new weights use separate ones
    torch.manual_seed(config.seed + 1_000_003 * processes.rank)
    started_with = Origin(source.fingerprint, source.revision, data.fingerprint, head.generation)
    if not earlier_origin and processes.is_main:
        origin.save(run_dir, started_with)
    return Setup(
        config=config,
        run_dir=run_dir,
        task=task,
        method=method,
        head=head,
        rows=rows,
        origin=started_with,
        random_weights=str(mismatch),
        notes=[
            *report.score_notes(task, {TRAIN: data.train, VALIDATION: data.validation, **data.extra}),
            *unknown_tokens.note(unknown),
        ],
        data_revision=data.revision,
        accelerator=accelerator,
        processes=processes,
        model=prepared,
        plain=accelerator.unwrap_model(prepared),
        loader=loader,
        optimizer=optimizer,
        scheduler=scheduler,
        parts=parts,
        steps_per_epoch=steps_per_epoch,
        frozen_steps=method.frozen_steps(len(rows.train)),
    )
