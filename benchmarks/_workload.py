"""What training is timed on: encoders, and sentences whose lengths are drawn from a stated distribution."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from transformers import BertConfig, BertForSequenceClassification

from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TASK = "glue/cola"
"""The task whose column names the files have; its rows are generated here."""
BUNDLED = "demo/tiny-bert"
MINILM_VOCABULARY = 30_522


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
    folder: Path, rows: int, layers: int = 6, width: int = 384, heads: int = 12, vocabulary: int | None = None
) -> Encoder:
    """A BERT of MiniLM's size with random weights and the bundled tokenizer, saved in `folder`."""
    tokenizer = load_tokenizer(sources.resolve(BUNDLED))
    config = BertConfig(
        vocab_size=vocabulary or len(tokenizer),
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


def minilm_of_rows(folder: Path, rows: pd.DataFrame) -> Encoder:
    """A BERT of MiniLM's size, its 30,522 rows of the token table included, with random weights.

    Its WordPiece tokenizer is trained on `rows`, so that their lengths in tokens are realistic without MiniLM's own files.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    special = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    pieces = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    pieces.normalizer, pieces.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=MINILM_VOCABULARY, special_tokens=list(special.values()), show_progress=False
    )
    pieces.train_from_iterator(rows["sentence"].tolist(), trainer)
    ends = [(token, pieces.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    pieces.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=pieces, model_max_length=512, **special)
    encoder = minilm_size(folder, 0, vocabulary=MINILM_VOCABULARY)
    tokenizer.save_pretrained(folder)
    return encoder


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
