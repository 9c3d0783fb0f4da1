"""Training embedding models: our loop against `SentenceTransformerTrainer`, cached gradients against whole batches, and evaluation.

    python benchmarks/embedding.py --model DIR --pairs FILE.parquet [--columns question context] [--batch 32] [--out docs]

All count processor seconds of one thread, so that other programs do not; the contenders take turns. `--model` is a folder of
sentence-transformers, `--pairs` a table whose first column finds the second. Bars: at least its samples per second; a cached batch
of 512 pairs within 2.2 times the whole one; an evaluation within 1.2 times `InformationRetrievalEvaluator`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from _report import Table, finish, machine, medians, options
from accelerate import Accelerator
from datasets import Dataset, disable_progress_bars
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import InformationRetrievalEvaluator
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import PrinterCallback, TrainerCallback
from transformers.utils import logging

from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.runs import planning
from isoviz.tasks.protocol import OwnTask
from isoviz.training import heads, memory, processes
from isoviz.training.evaluation import EncodedSplits, Evaluator
from isoviz.training.loop import train
from isoviz.training.reload import build

PACE_BAR, CACHED_BAR, EVALUATION_BAR = 1.0, 2.2, 1.2
COLUMNS = ("anchor", "positive")
clock = time.process_time


def main() -> int:
    """Measure, print, write the section if asked; 1 if a bar is missed."""
    parser = options(__doc__)
    parser.add_argument("--model", required=True, help="a folder of sentence-transformers")
    parser.add_argument("--pairs", type=Path, required=True, help="Parquet file")
    parser.add_argument("--columns", nargs=2, default=["question", "context"], help="of the file")
    parser.add_argument("--batch", type=int, default=32, help="pairs per step")
    parser.add_argument("--steps", type=int, default=10, help="steps per round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, medians of which count")
    parser.add_argument("--length", type=int, default=128, help="longest text, in tokens")
    parser.add_argument("--cached", type=int, nargs=2, default=[512, 32], help="pairs of a batch, and at once")
    parser.add_argument("--found", type=int, nargs=2, default=[1000, 5000], help="queries and documents to evaluate on")
    chosen = parser.parse_args()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()
    torch.set_num_threads(1)
    processes.begin()
    pairs = pd.read_parquet(chosen.pairs, columns=chosen.columns).set_axis(COLUMNS, axis=1)
    pairs = pairs.drop_duplicates("positive").drop_duplicates("anchor").sample(frac=1, random_state=0)
    table = Table("Embedding models", ["", "ours", "compared", "ours / compared", "bar"])
    missed = []
    for name, (ours, theirs, bar, more_is_better) in measured(pairs, chosen):
        ratio = ours / theirs
        if ratio < bar if more_is_better else ratio > bar:
            missed.append(f"{name}: {ratio:.2f}")
        sign = "≥" if more_is_better else "≤"
        table.rows.append([name, f"{ours:.3g}", f"{theirs:.3g}", f"{ratio:.2f}", f"{sign} {bar:g}"])
        print(name, f"{ratio:.2f}", flush=True)
    where = machine(["torch", "transformers", "sentence-transformers"], "one thread, processor time")
    return finish(chosen, "embedding", "## Embedding models", where, missed, table)


Row = tuple[str, tuple[float, float, float, bool]]


def measured(pairs: pd.DataFrame, chosen: argparse.Namespace) -> Iterator[Row]:
    """Name, both figures, the bar, and whether more is better, of each comparison."""
    size, at_once = chosen.cached
    few = pairs.head(chosen.batch * chosen.steps)
    for batching in ("shuffled", "bucketed"):
        config = configured(few, pairs.tail(4), chosen, batching=batching)
        sides = [(our_pace(config), their_pace(few, chosen)) for _ in range(chosen.rounds)]
        ours, theirs = (sorted(side)[len(side) // 2] for side in zip(*sides, strict=True))
        yield f"samples per second, {batching}", (ours, theirs, PACE_BAR, True)
    _, evaluator = loaded(configured(pairs.head(size), pairs.tail(4), chosen, batch_size=size))
    batch = next(iter(evaluator.rows.loader))
    del batch["item"]

    def step(parts: int) -> None:
        evaluator.model.train().zero_grad()
        memory.backward(evaluator.model, batch, parts, evaluator.accelerator, together=True)

    times = medians({"cached": lambda: step(size // at_once), "whole": lambda: step(1)}, 1, clock)
    yield f"ms, batch of {size} pairs, {at_once} at once", (times["cached"], times["whole"], CACHED_BAR, False)
    yield f"ms, evaluation of {chosen.found[0]} × {chosen.found[1]}", evaluation(pairs, chosen)


def configured(train: pd.DataFrame, validation: pd.DataFrame, chosen: argparse.Namespace, **changes: Any) -> RunConfig:
    """A run on these pairs."""
    folder = Path(tempfile.mkdtemp())
    train.to_parquet(folder / "train.parquet")
    validation.to_parquet(folder / "validation.parquet")
    own = OwnTask(text=COLUMNS[0], second=COLUMNS[1], kind="embedding")
    values = {"batch_size": chosen.batch, "max_length": chosen.length, "epochs": 1, "learning_rate": 2e-5, "threads": 1}
    values |= {"precision": "no", "data": str(folder), "own": own} | changes
    return planning.expand([chosen.model], ["own"], [("baseline", {})], [0], **values)[0]


def our_pace(config: RunConfig) -> float:
    """Samples per processor second of `isoviz.training.loop.train`, without its first step."""
    marks: list[tuple[int, float]] = []
    emit = lambda event: marks.append((event.step, clock())) if event.kind == "stepped" else None  # noqa: E731
    with tempfile.TemporaryDirectory() as folder:
        train(config, emit, lambda: False, Path(folder))
    (first, begin), (last, end) = marks[0], marks[-1]
    return (last - first) * config.batch_size / (end - begin)


class Marks(TrainerCallback):
    """When each optimiser step ended."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.taken.append(clock())


def their_pace(pairs: pd.DataFrame, chosen: argparse.Namespace) -> float:
    """The same of `SentenceTransformerTrainer`."""
    marks = Marks()
    config = configured(pairs, pairs.tail(4), chosen)
    library_trained(config, pairs, MultipleNegativesRankingLoss, [marks])
    return (len(marks.taken) - 1) * chosen.batch / (marks.taken[-1] - marks.taken[0])


def library_trained(
    config: RunConfig, rows: pd.DataFrame, loss: type[Any], callbacks: Sequence[TrainerCallback] = ()
) -> SentenceTransformer:
    """A model after `SentenceTransformerTrainer` with the settings of one of our runs."""
    model = SentenceTransformer(config.model, device="cpu")
    model.max_seq_length = config.max_length
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            folder, per_device_train_batch_size=config.batch_size, num_train_epochs=config.epochs, max_grad_norm=0.0,
            learning_rate=config.learning_rate, warmup_steps=config.warmup_ratio, weight_decay=config.weight_decay,
            save_strategy="no", logging_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=config.seed,
        )  # fmt: skip
        data = Dataset.from_pandas(rows, preserve_index=False)
        trainer = SentenceTransformerTrainer(model, arguments, data, loss=loss(model), callbacks=[*callbacks])
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    return model


def loaded(config: RunConfig) -> tuple[heads.Head, Evaluator]:
    """Head, model and rows of a run, before its first step."""
    task, source = tasks.get(config.task, config.own), sources.resolve(config.model)
    head = heads.head_for(task, load_tokenizer(source), config)
    model, _ = build(config, source, head, False)
    rows = EncodedSplits(tasks.load(task, config.data), head, config)
    head.prepare(model, rows.train)
    return head, Evaluator(model, head, rows, Accelerator(cpu=True, mixed_precision="no"), lambda: None)


def evaluation(pairs: pd.DataFrame, chosen: argparse.Namespace) -> tuple[float, float, float, bool]:
    """Tokenise, encode and rank, each query with as many documents: milliseconds of both, and the bar."""
    queries, documents = chosen.found
    frame = pairs.head(documents).assign(anchor=[pairs["anchor"].iloc[n % queries] for n in range(documents)])
    head, evaluator = loaded(configured(pairs.tail(chosen.batch), frame, chosen))
    encoder = SentenceTransformer(chosen.model, device="cpu")
    encoder.max_seq_length = chosen.length
    relevant: dict[str, set[str]] = {}
    for number, query in enumerate(frame["anchor"]):
        relevant.setdefault(query, set()).add(str(number))
    texts = dict(zip(map(str, range(documents)), frame["positive"], strict=True))
    search = InformationRetrievalEvaluator({query: query for query in relevant}, texts, relevant, batch_size=64)

    def ours() -> None:
        evaluator.rows.validation = head.encode(evaluator.rows.frame)
        head.answers(evaluator.rows.frame, evaluator.rows.validation, evaluator.validate(4).predictions)

    times = medians({"ours": ours, "theirs": lambda: search(encoder)}, 1, clock)
    return times["ours"], times["theirs"], EVALUATION_BAR, False


if __name__ == "__main__":
    raise SystemExit(main())
