"""Small models and data that the tests make for themselves."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

WORDS = [f"w{i}" for i in range(40)]
FAMILIES = ("bert", "albert", "roberta", "distilbert")
"""Of the papers, with an encoder alone; then those of the papers that write, then the rest."""
WRITERS = ("bart", "mbart")
LATER = ("electra", "deberta-v2", "modernbert", "mpnet")
LATER_WRITERS = ("t5", "marian")
TWO_SIDED = ("bart", "mbart", "t5")
"""Writers that transformers can also put a classifier, or a finder of stretches, on."""
CAUSAL = {"gpt2": "GPT2", "llama": "Llama"}
"""Decoders, as `tests.models.readers` names them."""
TASKS = {
    "classification": "glue/cola",
    "regression": "glue/stsb",
    "span": "squad",
    "seq2seq": "wmt16/ro-en",
    "embedding": "stsb",
}
"""A task of each head kind, whose files `write` makes."""


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


def write(kind: str, folder: Path, train: int = 24, validation: int = 12) -> Path:
    """Rows for the task of that kind in `TASKS`, as its set on the hub has them."""
    if kind == "classification":
        return write_cola(folder, train, validation)
    folder.mkdir(parents=True, exist_ok=True)
    generator = np.random.default_rng(0)

    def words(low: int, high: int) -> list[str]:
        return [str(word) for word in generator.choice(WORDS, size=int(generator.integers(low, high)))]

    for split, rows in (("train", train), ("validation", validation)):
        made: list[dict[str, object]] = []
        for row in range(rows):
            first, second = words(3, 8), words(3, 8)
            if kind in ("regression", "embedding"):  # how many words of the first are early in the list
                label = 5 * float(np.mean([word in WORDS[:20] for word in first]))
                made.append({"sentence1": " ".join(first), "sentence2": " ".join(second), "label": label, "idx": row})
            elif kind == "span":
                context = words(12, 40)  # up to three windows; the answer is the requested word
                at = int(generator.integers(len(context)))
                question, start = f"{first[0]} {context[at]}", len(" ".join([*context[:at], ""]))
                answers = {"text": [context[at]], "answer_start": [start]}
                made.append({"id": str(row), "question": question, "context": " ".join(context), "answers": answers})
            else:
                made.append({"translation": {"ro": " ".join(first), "en": " ".join(first[::-1])}})
        pd.DataFrame(made).to_parquet(folder / f"{split}.parquet")
    return folder


def without_a_weight(bert: Path, folder: Path) -> Path:
    """A copy of a BERT of whose second layer a weight is gone."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(bert, folder)
    weights = load_file(folder / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
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
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    if family in CAUSAL:
        from tests.models import readers

        dropouts = ("embd_pdrop", "attn_pdrop", "resid_pdrop") if family == "gpt2" else ("attention_dropout",)
        readers.make(CAUSAL[family], folder, **dict.fromkeys(dropouts, dropout))
        return
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    single, pair = "[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"
    if family in ("t5", "marian"):  # no token at the start
        single, pair = "$A [SEP]", "$A [SEP] $B:1 [SEP]:1"
    tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
        single=single, pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if family in ("bert", "albert", "electra") else [])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", eos_token="[SEP]", bos_token="[CLS]", model_input_names=names,
    ).save_pretrained(folder)  # fmt: skip
    torch.manual_seed(1)
    model = _network(family, len(vocabulary), dropout)
    with torch.no_grad():  # as after some training: otherwise tiny weights make all logits nearly equal
        for parameter in model.parameters():
            if parameter.ndim > 1 and family in (*WRITERS, *LATER_WRITERS):
                parameter.normal_(std=0.3)
    model.save_pretrained(folder)


def make_mbart(folder: Path, fifty: bool) -> Path:
    """An mBART with its own tokenizer, which marks languages: after the text, or (the one for fifty languages) before it."""
    import transformers as t

    pieces = [(piece, 0.0) for piece in ("<s>", "<pad>", "</s>", "<unk>")] + [(f"▁{word}", -1.0) for word in WORDS]
    tokenizer = (t.MBart50Tokenizer if fifty else t.MBartTokenizer)(vocab=pieces)
    tokenizer.save_pretrained(folder)
    model = t.MBartForConditionalGeneration(
        t.MBartConfig(vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                      decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
                      bos_token_id=0, pad_token_id=1, eos_token_id=2, decoder_start_token_id=2)
    )  # fmt: skip
    model.save_pretrained(folder)
    return folder


def _network(family: str, words: int, dropout: float) -> Any:
    """Two layers of width 16 (t5, marian and the like: two on each side)."""
    import transformers as t

    common = {"vocab_size": words, "pad_token_id": 0}
    size = {**common, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32,
            "max_position_embeddings": 64, "hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}  # fmt: skip
    two_sides = {**common, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
                 "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64,
                 "dropout": dropout, "classifier_dropout": dropout, "bos_token_id": 2, "eos_token_id": 3}  # fmt: skip
    if family == "bert":
        return t.BertModel(t.BertConfig(**size))
    if family == "albert":
        return t.AlbertModel(t.AlbertConfig(embedding_size=8, classifier_dropout_prob=dropout, **size))
    if family == "roberta":
        return t.RobertaModel(t.RobertaConfig(**size))
    if family == "mpnet":
        return t.MPNetModel(t.MPNetConfig(**size | {"bos_token_id": 2, "eos_token_id": 3}))
    if family == "distilbert":
        return t.DistilBertModel(
            t.DistilBertConfig(dim=16, n_layers=2, n_heads=2, hidden_dim=32, max_position_embeddings=64, dropout=dropout,
                               attention_dropout=dropout, seq_classif_dropout=dropout, qa_dropout=dropout, **common)
        )  # fmt: skip
    if family == "electra":
        return t.ElectraModel(t.ElectraConfig(embedding_size=8, **size))
    if family == "deberta-v2":  # with DeBERTa-v3's attention
        return t.DebertaV2Model(
            t.DebertaV2Config(relative_attention=True, position_biased_input=False, pos_att_type=["p2c", "c2p"],
                              share_att_key=True, norm_rel_ebd="layer_norm", position_buckets=8, type_vocab_size=0,
                              pooler_dropout=dropout, **size)
        )  # fmt: skip
    if family == "modernbert":
        return t.ModernBertModel(
            t.ModernBertConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                               max_position_embeddings=64, local_attention=8, classifier_dropout=dropout,
                               bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3, **common)
        )  # fmt: skip
    if family == "bart":
        return t.BartForConditionalGeneration(
            t.BartConfig(decoder_start_token_id=3, forced_eos_token_id=3, **two_sides)
        )
    if family == "mbart":
        return t.MBartForConditionalGeneration(t.MBartConfig(decoder_start_token_id=3, **two_sides))
    if family == "marian":
        return t.MarianMTModel(
            t.MarianConfig(decoder_start_token_id=0, forced_eos_token_id=3, scale_embedding=True, **two_sides)
        )
    return t.T5ForConditionalGeneration(
        t.T5Config(d_model=16, d_kv=8, d_ff=32, num_layers=2, num_decoder_layers=2, num_heads=2, eos_token_id=3,
                   relative_attention_num_buckets=8, dropout_rate=dropout, classifier_dropout=dropout, decoder_start_token_id=0, **common)
    )  # fmt: skip


def embed(
    source: Any, texts: Any, *, pooling: str = "cls", layer: int | None = None, max_length: int = 128
) -> np.ndarray:
    """One cloud of one pass, (n, d): n texts, or all n tokens for `tokens`; of the last layer unless one is given."""
    from isoviz.models.extract import layer_views

    layers = "last" if layer is None else [layer]
    views = layer_views(
        source, texts, poolings=(pooling,), layers=layers, max_length=max_length, max_tokens_per_layer=None
    )
    return views.points(views.depth if layer is None else layer, pooling)
