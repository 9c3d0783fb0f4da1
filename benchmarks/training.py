"""The pace of training: our loop against `transformers.Trainer`, and IsoLayer's epoch. `costs.py` times a step of every method.

    python benchmarks/training.py [--rounds 3] [--threads N] [--model DIR] [--quick] [--out docs]

Each on the bundled encoder and on one of MiniLM's size (random weights; `--model DIR`: a real one instead), in float32, on
generated sentences whose lengths are stated. Contenders take turns in one process.

1. Samples per second between the end of the first and the end of the last optimiser step of an epoch, so that loading and
   measuring are left out on both sides: ours through `isoviz.training.loop.train`, once with exactly Trainer's batches, once with
   our defaults (batches of similar lengths) against Trainer's (random order); both pad each batch to its longest row. Logging,
   saving, evaluation and gradient clipping are off in Trainer, because our loop has no clipping.
2. IsoLayer's second stage on 2,000 rows: seconds per epoch on the cached vectors (the held-out rows' metric counted in),
   against the one pass of the frozen encoder that made them.

Bars: samples per second at least 1.0 times Trainer's with the same batches and 1.3 times with defaults; IsoLayer's epoch at
least 50 times faster than the pass. Exit code 1 if one is missed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# threads wait as every worker's do (`isoviz.jobs.processes.share_cores`); torch reads it when it is loaded
os.environ.update({"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "1000"})

import torch
from _report import Table, finish, machine, milliseconds, options
from _steps import (
    BATCH,
    BUNDLED,
    COLA,
    TASK,
    WIDE,
    Encoder,
    Lengths,
    encode,
    minilm_size,
    moment,
    sentences,
    tokenised,
    write_rows,
)
from accelerate import Accelerator
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.utils import logging

from isoviz import devices, methods, tasks
from isoviz.config import RunConfig
from isoviz.events import Entered, Event, Stepped
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.training import evaluation, heads, processes
from isoviz.training.batches import Collator, Encoded, EpochBatches, fixed_batches
from isoviz.training.evaluation import Evaluator
from isoviz.training.loop import train

PARTS = ("pace", "layer")
SAME_BAR, DEFAULT_BAR, LAYER_BAR = 1.0, 1.3, 50.0
LAYER_ROWS, LAYER_EPOCHS = 2000, 20


@dataclass(frozen=True)
class Scale:
    """How much is measured."""

    rounds: int
    layer_rows: int
    lengths: tuple[Lengths, ...] = (COLA, WIDE)


def parse() -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="rounds against Trainer and of IsoLayer, at least 3")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--model", type=Path, metavar="DIR", help="a real encoder in place of the MiniLM-size one")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script; no bar is judged")
    chosen = parser.parse_args()
    if not chosen.quick and chosen.rounds < 3:
        parser.error(f"at least --rounds 3 (got {chosen.rounds})")
    if chosen.out and (chosen.quick or len(chosen.parts) < len(PARTS)):
        parser.error("--out: the documentation holds full runs only; leave --quick and --parts out")
    return chosen


def encoders(chosen: argparse.Namespace, folder: Path) -> list[Encoder]:
    """The bundled one, and one of MiniLM's size or the one that was given. Small ones train on more rows."""
    if chosen.quick:
        return [Encoder("bundled", BUNDLED, 4 * BATCH), minilm_size(folder, 4 * BATCH, layers=2, width=96, heads=4)]
    if chosen.model:
        return [Encoder("bundled", BUNDLED, 128 * BATCH), Encoder(chosen.model.name, str(chosen.model), 20 * BATCH)]
    return [Encoder("bundled", BUNDLED, 128 * BATCH), minilm_size(folder, 20 * BATCH)]


def main() -> int:
    """Measure, print, write the section if asked; 1 if a bar is missed."""
    chosen = parse()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    threads = chosen.threads or len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    scale = Scale(2, 300) if chosen.quick else Scale(chosen.rounds, LAYER_ROWS)
    tables: list[Table] = []
    missed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        known = encoders(chosen, folder / "encoder")
        if "pace" in chosen.parts:
            paces = [pace_rows(encoder, scale, folder / f"rows-{n}", threads) for n, encoder in enumerate(known)]
            tables.append(pace_table([row for rows, _ in paces for row in rows], scale))
            missed += [line for _, late in paces for line in late]
        if "layer" in chosen.parts:
            layers = [layer_row(encoder, scale) for encoder in known]
            tables.append(layer_table([row for row, _ in layers], scale))
            missed += [line for _, late in layers for line in late]
    slot = devices.describe().slots[0]
    gpu = "" if slot.name == "cpu" else f", {slot.label}"
    where = machine(["torch", "transformers", "accelerate", "numpy"], f"{threads} threads{gpu}")
    return finish(chosen, "training", "## Training", where, missed, *tables)


# ------------------------------------------------------------------------------------------ our loop against Trainer


def our_pace(config: RunConfig) -> float:
    """Samples per second of one epoch of `isoviz.training.loop.train`."""
    marks: list[tuple[int, float]] = []

    def emit(event: Event) -> None:
        if isinstance(event, Entered) and event.phase == "training":
            marks.append((0, time.perf_counter()))
        elif isinstance(event, Stepped):
            marks.append((event.step, time.perf_counter()))

    with tempfile.TemporaryDirectory() as folder:
        train(config, emit, lambda: False, Path(folder))
    return pace(marks, config.batch_size)


class Marks(TrainerCallback):
    """When each optimiser step ended."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken.append((0, time.perf_counter()))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        ends = state.global_step in (1, state.max_steps)  # the device has done what was asked of it
        self.taken.append((state.global_step, moment() if ends else time.perf_counter()))


class SameBatches(Trainer):
    """A Trainer that reads exactly the batches of our loop: same rows, same order, same padding, collated on demand."""

    def __init__(self, *args: Any, collator: Collator, order: EpochBatches, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.collator, self.order = collator, order

    def get_train_dataloader(self) -> DataLoader[Any]:
        loader = DataLoader(self.train_dataset, batch_sampler=self.order, collate_fn=self._collate)  # type: ignore[arg-type]
        return self.accelerator.prepare(loader)

    def _collate(self, rows: list[Any]) -> dict[str, torch.Tensor]:
        batch = self.collator(rows)
        batch.pop("item")
        return batch


def trainer_pace(config: RunConfig, same: bool, grouped: bool = False) -> float:
    """Samples per second of one epoch of `transformers.Trainer` on the same files, encoder and settings.

    Args:
        same: with exactly our batches.
        grouped: with Trainer's own groups of similar length, over the whole epoch.
    """
    task, source = tasks.get(config.task), sources.resolve(config.model)
    tokenizer = load_tokenizer(source)
    frame = tasks.load(task, config.data, None, config.max_train, config.max_eval).train
    encoded = encode(frame, task.columns, tokenizer, config.max_length)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=config.batch_size,
            num_train_epochs=1,
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
            warmup_steps=round(config.warmup_ratio * len(encoded) / config.batch_size),  # rounded as our loop does
            max_grad_norm=0.0,
            bf16=config.precision == "bf16",
            seed=config.seed,
            save_strategy="no",
            eval_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            train_sampling_strategy="group_by_length" if grouped else "random",
        )
        marks = Marks()
        common = {"model": load_network(source, 2, config.seed), "args": arguments, "callbacks": [marks]}
        if same:
            order = EpochBatches(encoded.lengths, config.batch_size, config.seed, bucketed=False)
            trainer = SameBatches(
                **common, train_dataset=encoded, collator=Collator(tokenizer.pad_token_id), order=order
            )
        else:
            rows = [
                {name: value for name, value in encoded[row].items() if name != "item"} for row in range(len(encoded))
            ]
            trainer = Trainer(**common, train_dataset=rows, processing_class=tokenizer)  # type: ignore[arg-type]
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return pace(marks.taken, config.batch_size, whole=grouped)


def pace(marks: list[tuple[int, float]], batch: int, whole: bool = False) -> float:
    """Samples per second between the end of the first and of the last step, or of the `whole` epoch; all batches are full.

    Args:
        marks: the beginning of training, as step 0, and the end of each step.
    """
    (first, begin), (last, end) = marks[0 if whole else 1], marks[-1]
    return (last - first) * batch / (end - begin)


def pace_rows(encoder: Encoder, scale: Scale, folder: Path, threads: int) -> tuple[list[list[str]], list[str]]:
    """Both comparisons on each spread of lengths: rows of the table, and the bars missed."""
    rows: list[list[str]] = []
    missed: list[str] = []
    tokenizer = load_tokenizer(sources.resolve(encoder.model))
    for lengths in scale.lengths:
        data = write_rows(
            folder / lengths.name, sentences(tokenizer, lengths, encoder.rows, 2), sentences(tokenizer, COLA, BATCH, 3)
        )
        for same, bar in ((True, SAME_BAR), (False, DEFAULT_BAR)):
            config = RunConfig(
                model=encoder.model,
                task=TASK,
                data=str(data),
                epochs=1,
                batch_size=BATCH,
                batching="shuffled" if same else "bucketed",
                precision="no",
                threads=threads,
            )
            sides: dict[str, Callable[[], float]] = {
                "ours": lambda config=config: our_pace(config),
                "Trainer": lambda config=config, same=same: trainer_pace(config, same),
            }
            rates = alternate(sides, scale.rounds)
            ours, theirs = (statistics.median(rates[name]) for name in sides)
            each = [a / b for a, b in zip(rates["ours"], rates["Trainer"], strict=True)]
            order = "same batches" if same else "defaults"
            label = f"{encoder.name}, {lengths.name}, {order}"
            spread = f"{min(each):.2f} to {max(each):.2f}"
            rows.append([label, f"{ours:.0f}", f"{theirs:.0f}", f"{ours / theirs:.2f}", spread, f"{bar:g}"])
            print("  ".join(rows[-1]), flush=True)
            if ours < bar * theirs:
                missed.append(f"{rows[-1][0]}: {ours / theirs:.3f} × Trainer, at least {bar:g} wanted")
    return rows, missed


def alternate(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Each side once per round; who begins changes from round to round."""
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            rates[name].append(sides[name]())
    return rates


def pace_table(rows: list[list[str]], scale: Scale) -> Table:
    header = ["encoder, lengths, batches", "ours, samples/s", "Trainer, samples/s", "ours / Trainer", "by round", "bar"]
    stated_lengths = "; ".join(lengths.stated for lengths in scale.lengths)
    notes = [
        f"Batches of {BATCH}, float32, medians of {scale.rounds} rounds in turns. {stated_lengths}.",
        "Same batches: the same rows in the same random order with the same padding on both sides. Defaults: rows of like length "
        "together (ours), random order (Trainer). Gradient clipping is off on both sides.",
    ]
    return Table("Our loop against transformers.Trainer", header, rows, notes)


# ------------------------------------------------------------------------------------------ IsoLayer's second stage


def layer_row(encoder: Encoder, scale: Scale) -> tuple[list[str], list[str]]:
    """A row of the table, and the bar if it was missed."""
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
    return row, missed if frozen < LAYER_BAR * epoch else []


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

    rows: Any = SimpleNamespace(seed=0, sample=lambda tokens: fixed_batches(encoded, collator, 2 * BATCH))
    head = heads.head_for(tasks.get(TASK), load_tokenizer(sources.resolve(encoder.model)), RunConfig())
    evaluator = Evaluator(model, head, rows, accelerator, lambda: None)
    begin = moment()
    steps = evaluation.fit_frozen(evaluator, method, report, step=0, epoch=0, most_steps=planned)
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


if __name__ == "__main__":
    raise SystemExit(main())
