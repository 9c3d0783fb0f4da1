"""What training is timed on: encoders, sentences whose lengths are drawn from a stated distribution, and one training step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader
from transformers import BertConfig, BertForSequenceClassification

from isoviz.config import RunConfig
from isoviz.methods.protocol import Method, Representations, TrainingSample
from isoviz.models import sources
from isoviz.models.adapter import HeadedModel, load_network, load_tokenizer
from isoviz.training.batches import Collator, Encoded, EpochBatches, tokenise
from isoviz.training.optimisation import make_optimizer, make_scheduler

if TYPE_CHECKING:
    from accelerate import Accelerator
    from transformers import PreTrainedTokenizerBase

BATCH = 32
WARM_UP = 3
TASK = "glue/cola"
"""The task whose column names the files have; its rows are generated here."""
BUNDLED = "demo/tiny-bert"


@dataclass(frozen=True)
class Lengths:
    """Words per sentence: log-normal, at least 2 and at most `longest`; each word is one token, and two special tokens come
    with every sentence."""

    name: str
    mean_log: float
    std_log: float
    longest: int

    @property
    def stated(self) -> str:
        return (
            f"{self.name}: log-normal words per sentence, median {np.exp(self.mean_log):.0f}, deviation of the logarithm "
            f"{self.std_log:g}, at most {self.longest}"
        )

    def draw(self, rows: int, generator: np.random.Generator) -> np.ndarray:
        """(rows,) words."""
        drawn = np.rint(generator.lognormal(self.mean_log, self.std_log, rows))
        return np.clip(drawn, 2, self.longest).astype(int)


COLA = Lengths("CoLA-like", 2.07, 0.44, 60)
"""Words of CoLA's training sentences: the logarithm has mean 1.94 and deviation 0.44; the full stop is one more token."""
WIDE = Lengths("wide", 3.3, 0.7, 120)
"""From a few words to a paragraph, in one task."""


@dataclass(frozen=True)
class Encoder:
    """One encoder to train.

    Attributes:
        name: in tables.
        model: as in `RunConfig.model`: a bundled name or a directory.
        rows: training rows of one timed epoch against `transformers.Trainer`; full batches.
    """

    name: str
    model: str
    rows: int


def minilm_size(
    folder: Path,
    rows: int,
    layers: int = 6,
    width: int = 384,
    heads: int = 12,
    table: int | None = None,
) -> Encoder:
    """A BERT of MiniLM's size with random weights, saved in `folder`.

    Its tokenizer is the bundled one; `table`: rows of its table of tokens, if it should be larger.
    """
    tokenizer = load_tokenizer(sources.resolve(BUNDLED))
    config = BertConfig(
        vocab_size=table or len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return Encoder(f"MiniLM-size ({layers} × {width})", str(folder), rows)


def sentences(tokenizer: PreTrainedTokenizerBase, lengths: Lengths, rows: int, seed: int) -> pd.DataFrame:
    """`sentence` and `label`: random words that are single tokens, with random labels 0 and 1."""
    generator = np.random.default_rng(seed)
    words = _whole_words(tokenizer)
    counts = lengths.draw(rows, generator)
    texts = [" ".join(generator.choice(words, size=count)) for count in counts]
    labels = generator.permutation(np.arange(rows) % 2)
    return pd.DataFrame({"sentence": texts, "label": labels})


def _whole_words(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    words = sorted(token for token in tokenizer.get_vocab() if token.isascii() and token.isalpha() and token.islower())
    single_tokens = [word for word, ids in zip(words, tokenizer(words)["input_ids"], strict=True) if len(ids) == 3]
    if len(single_tokens) < 100:
        raise SystemExit("--model: its tokenizer keeps fewer than 100 words whole; lengths could not be set")
    return single_tokens


def write_rows(folder: Path, train: pd.DataFrame, validation: pd.DataFrame) -> Path:
    """The two files that `RunConfig.data` wants."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, frame in (("train", train), ("validation", validation)):
        frame.to_json(folder / f"{name}.jsonl", orient="records", lines=True)
    return folder


def padded(encoder: Encoder, lengths: Lengths, rows: int) -> Iterator[dict[str, torch.Tensor]]:
    """Batches of random rows, padded to their longest, without row numbers."""
    encoded, collator = tokenised(encoder, lengths, rows, seed=1)
    order = EpochBatches(encoded.lengths, BATCH, 0, bucketed=False)
    for batch in DataLoader(encoded, batch_sampler=order, collate_fn=collator):
        batch.pop("item")
        yield batch


def tokenised(encoder: Encoder, lengths: Lengths, rows: int, seed: int) -> tuple[Encoded, Collator]:
    tokenizer = load_tokenizer(sources.resolve(encoder.model))
    frame = sentences(tokenizer, lengths, rows, seed)
    encoded = encode(frame, ("sentence",), tokenizer, RunConfig().max_length)
    return encoded, Collator(tokenizer.pad_token_id)


def encode(frame: pd.DataFrame, columns: Sequence[str], tokenizer: PreTrainedTokenizerBase, longest: int) -> Encoded:
    """Rows of a classification task, tokenised without the cache."""
    return Encoded(tokenise(frame, columns, tokenizer, longest), frame["label"].to_numpy(), np.arange(len(frame)))


def moment() -> float:
    """Now, with everything on the device done."""
    if torch.accelerator.is_available():
        torch.get_device_module().synchronize()
    return time.perf_counter()


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

    def refresh(self, batches: list[dict[str, torch.Tensor]]) -> None:
        """The method's statistics over these training rows."""

        def representations(_tokens: int) -> Iterator[Representations]:
            for batch in batches:
                yield self.model(**{name: value for name, value in batch.items() if name != "labels"}).reps

        self.model.eval()
        with torch.no_grad():
            self.method.refresh(TrainingSample(0, representations))

    def step(self, batch: dict[str, torch.Tensor]) -> None:
        """One step as the loop takes it, losses read."""
        self.model.train()
        with self.accelerator.accumulate(self.model):
            outputs = self.model(**batch, penalise=True)
            self.accelerator.backward(outputs.loss)
            self.optimizer.step()
            self.scheduler.step()
            self.optimizer.zero_grad()
        torch.stack([term.detach().float() for term in (*outputs.terms.values(), outputs.loss)]).tolist()


def in_turns(
    steppers: Mapping[str, Stepper], batches: list[dict[str, torch.Tensor]], clock: Callable[[], float]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Milliseconds of each stepper's `refresh`; then of its step on each batch after `WARM_UP`, in an order that rotates."""
    refreshed: dict[str, float] = {}
    for name, stepper in steppers.items():
        begin = clock()
        stepper.refresh(batches)
        refreshed[name] = 1e3 * (clock() - begin)
    took: dict[str, list[float]] = {name: [] for name in steppers}
    names = list(steppers)
    for number, batch in enumerate(batches):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            begin = clock()
            steppers[name].step(batch)
            if number >= WARM_UP:
                took[name].append(1e3 * (clock() - begin))
    return refreshed, took
