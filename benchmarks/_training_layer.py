"""The third part of `training.py`: an epoch of IsoLayer on cached vectors against the frozen encoder's one pass."""

from __future__ import annotations

import statistics
import time

from _charts import milliseconds
from _report import Table
from _training import BATCH, Scale, moment, tokenised
from _workload import COLA, TASK, Encoder
from accelerate import Accelerator

from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.events import Stepped
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.training import heads, processes, second_stage
from isoviz.training.batches import Collator, Encoded, fixed_batches
from isoviz.training.processes import Processes
from isoviz.training.second_stage import Stage

LAYER_BAR = 50.0
LAYER_ROWS, LAYER_EPOCHS = 2000, 20


def layer_row(encoder: Encoder, scale: Scale) -> tuple[list[str], tuple[float, float], list[str]]:
    """A row of the table, (ms per layer epoch, ms of the pass) and the bar if it was missed."""
    encoded, collator = tokenised(encoder, COLA, scale.layer_rows, seed=4)
    epochs: list[float] = []
    passes: list[float] = []
    for _ in range(scale.rounds):
        of_pass, of_epoch = second_stage_seconds(encoder, encoded, collator)
        passes.append(1e3 * of_pass)
        epochs.append(1e3 * of_epoch)
    frozen, epoch = statistics.median(passes), statistics.median(epochs)
    row = [encoder.name, milliseconds(epoch), milliseconds(frozen), f"{frozen / epoch:.0f}", f"{LAYER_BAR:g}"]
    missed = [f"{encoder.name}: IsoLayer's epoch {frozen / epoch:.1f} times faster, at least {LAYER_BAR:g} wanted"]
    return row, (epoch, frozen), missed if frozen < LAYER_BAR * epoch else []


def second_stage_seconds(encoder: Encoder, encoded: Encoded, collator: Collator) -> tuple[float, float]:
    """Seconds of the encoder's pass and of one epoch of the layer, from one second stage as a run has it."""
    processes.begin()
    accelerator = Accelerator(mixed_precision="no")
    kind = methods.get("isolayer")
    # every epoch of the stage is run, however early the metric settles
    method = kind(kind.Params(layer_epochs=LAYER_EPOCHS, patience=LAYER_EPOCHS))
    model = accelerator.prepare(HeadedModel(load_network(sources.resolve(encoder.model), 2, 0), method))
    starts: list[float] = []

    planned = method.frozen_steps(len(encoded))

    def report(event: Stepped) -> None:
        if not starts:  # after the first step: the time left is that step's, once for each of the others
            starts.append(time.perf_counter() - event.eta_seconds / (planned - 1))  # when the vectors were ready

    begin = moment()
    steps = second_stage.fit(
        model,
        method,
        fixed_batches(encoded, collator, 2 * BATCH),
        accelerator,
        Processes(accelerator).gather,
        heads.head_for(tasks.get(TASK), load_tokenizer(sources.resolve(encoder.model)), RunConfig()),
        0,
        Stage(0, 0, planned),
        report,
        lambda: None,
    )
    end = moment()
    assert steps == planned, "the layer stopped early"
    return starts[0] - begin, (end - starts[0]) / LAYER_EPOCHS


def layer_table(rows: list[list[str]], scale: Scale) -> Table:
    header = ["encoder", "layer epoch, ms", "frozen encoder's pass, ms", "pass / epoch", "bar"]
    notes = [
        f"{scale.layer_rows} rows of {COLA.name} lengths, default parameters, {LAYER_EPOCHS} layer epochs, medians of {scale.rounds} "
        "rounds. The pass reads like lengths together, in batches of 64; a run makes it once."
    ]
    return Table("IsoLayer's second stage", header, rows, notes)
