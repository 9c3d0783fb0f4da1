"""Small models and data that the tests make for themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

WORDS = [f"w{i}" for i in range(40)]
FAMILIES = ("bert", "albert", "roberta", "distilbert")


def write_cola(folder: Path, train: int = 64, validation: int = 32) -> Path:
    """Sentences of words; acceptable (1) if the word "w0" is among them."""
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)
    for split, rows in (("train", train), ("validation", validation)):
        sentences, labels = [], []
        for row in range(rows):
            words = list(generator.choice(WORDS[1:], size=int(generator.integers(3, 9))))
            if row % 2:
                words[int(generator.integers(len(words)))] = "w0"
            sentences.append(" ".join(words))
            labels.append(row % 2)
        pd.DataFrame({"sentence": sentences, "label": labels, "idx": range(rows)}).to_parquet(
            folder / f"{split}.parquet"
        )
    return folder


class TinyModels:
    """Makes each family's directory on first use."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __call__(self, family: str = "bert", dropout: float = 0.1) -> Path:
        folder = self.root / f"{family}-{dropout}"
        if not folder.exists():
            _make(family, folder, dropout)
        return folder


def _make(family: str, folder: Path, dropout: float) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import (
        AlbertConfig,
        AlbertModel,
        BertConfig,
        BertModel,
        DistilBertConfig,
        DistilBertModel,
        PreTrainedTokenizerFast,
        RobertaConfig,
        RobertaModel,
    )

    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if family in ("bert", "albert") else [])
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_input_names=names,
    ).save_pretrained(folder)  # fmt: skip
    size = {"vocab_size": len(vocabulary), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2,
            "intermediate_size": 32, "pad_token_id": 0, "max_position_embeddings": 64,
            "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}  # fmt: skip
    torch.manual_seed(1)
    if family == "bert":
        BertModel(BertConfig(**size)).save_pretrained(folder)
    elif family == "albert":
        AlbertModel(AlbertConfig(embedding_size=8, classifier_dropout_prob=dropout, **size)).save_pretrained(folder)
    elif family == "roberta":
        RobertaModel(RobertaConfig(**size)).save_pretrained(folder)
    else:
        DistilBertModel(
            DistilBertConfig(vocab_size=len(vocabulary), dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=64,
                             dropout=dropout, attention_dropout=dropout, seq_classif_dropout=dropout, pad_token_id=0)
        ).save_pretrained(folder)  # fmt: skip
