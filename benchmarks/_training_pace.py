"""The second part of `training.py`: samples per second of our loop and of `transformers.Trainer`."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _report import Table
from _training import BATCH, Scale, encode
from _workload import COLA, TASK, Encoder, sentences, write_rows
from torch.utils.data import DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.events import Entered, Event, Stepped
from isoviz.models import sources
from isoviz.models.adapter import load_network, load_tokenizer
from isoviz.training import train
from isoviz.training.batches import Collator, EpochBatches

SAME_BAR, DEFAULT_BAR = 1.0, 1.3
REAL_ROWS, REAL_ROUNDS = 800, 10


def our_pace(config: RunConfig, whole: bool = False) -> float:
    """Samples per second of one epoch of `isoviz.training.train`; `whole` as in `pace`."""
    marks: list[tuple[int, float]] = []

    def emit(event: Event) -> None:
        if isinstance(event, Entered) and event.phase == "training":
            marks.append((0, time.perf_counter()))
        elif isinstance(event, Stepped):
            marks.append((event.step, time.perf_counter()))

    with tempfile.TemporaryDirectory() as folder:
        train(config, emit, lambda: False, Path(folder))
    return pace(marks, whole)


class Marks(TrainerCallback):
    """When each optimiser step ended."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, float]] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken.append((0, time.perf_counter()))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken.append((state.global_step, time.perf_counter()))


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
        grouped: with Trainer's own groups of similar length; measured over the whole epoch, because its first batch is the longest.
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
    return pace(marks.taken, whole=grouped)


def pace(marks: list[tuple[int, float]], whole: bool = False) -> float:
    """Samples per second between the end of the first and of the last step, or of the `whole` epoch; all batches are full.

    Args:
        marks: the beginning of training, as step 0, and the end of each step.
    """
    (first, begin), (last, end) = marks[0 if whole else 1], marks[-1]
    return (last - first) * BATCH / (end - begin)


def pace_rows(
    encoder: Encoder, scale: Scale, folder: Path, threads: int
) -> tuple[list[list[str]], list[Any], list[str]]:
    """Both comparisons on each spread of lengths: rows of the table, ms per sample for the plot, and the bars missed."""
    rows: list[list[str]] = []
    drawn: list[Any] = []
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
            drawn.append((f"{encoder.name},\n{lengths.name}, {order}", 1e3 / ours, 1e3 / theirs))
            print("  ".join(rows[-1]), flush=True)
            if ours < bar * theirs:
                missed.append(f"{rows[-1][0]}: {ours / theirs:.3f} × Trainer, at least {bar:g} wanted")
    return rows, drawn, missed


def real_row(encoder: Encoder, scale: Scale, data: Path, threads: int) -> tuple[list[str], Any, list[str]]:
    """Real rows, both sides with batches of similar lengths: the row of the table, ms per sample for the plot, and a missed bar."""
    config = RunConfig(
        model=encoder.model, task=TASK, data=str(data), epochs=1, batch_size=BATCH, precision="no", threads=threads,
        max_train=REAL_ROWS, max_eval=2 * BATCH,
    )  # fmt: skip
    sides: dict[str, Callable[[], float]] = {
        "ours": lambda: our_pace(config, whole=True),
        "Trainer": lambda: trainer_pace(config, same=False, grouped=True),
    }
    rates = alternate(sides, max(REAL_ROUNDS, scale.rounds) if scale.steps >= 15 else scale.rounds)
    each = [a / b for a, b in zip(rates["ours"], rates["Trainer"], strict=True)]
    ours, theirs = (statistics.median(rates[name]) for name in sides)
    ratio = statistics.median(each)
    label = f"{encoder.name}, {data.name} ({REAL_ROWS} rows), both by length"
    row = [
        label,
        f"{ours:.0f}",
        f"{theirs:.0f}",
        f"{ratio:.2f}",
        f"{min(each):.2f} to {max(each):.2f}",
        f"{DEFAULT_BAR:g}",
    ]
    print("  ".join(row), flush=True)
    missed = [f"{label}: {ratio:.3f} × Trainer, at least {DEFAULT_BAR:g} wanted"] if ratio < DEFAULT_BAR else []
    return row, (f"{encoder.name},\n{data.name}, by length", 1e3 / ours, 1e3 / theirs), missed


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
        f"Both by length: Trainer groups by length, too. Whole epochs, because its first batch is the longest; median of the ratios of "
        f"{REAL_ROUNDS} rounds. The encoder has MiniLM's size and random weights; its WordPiece tokenizer is trained on the rows.",
    ]
    return Table("Our loop against transformers.Trainer", header, rows, notes)
