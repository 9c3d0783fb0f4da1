"""Model folders that are damaged, or whose configuration says what cannot be."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from isoviz.errors import LONGEST, InputError
from isoviz.models import sources
from tests.fuzzing import files, nasty

Damage = tuple[str, Any]
"""A kind of damage to a model folder, and its parameters."""

_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size", "max_position_embeddings",
          "type_vocab_size", "layer_norm_eps", "pad_token_id", "hidden_dropout_prob", "initializer_range")  # fmt: skip
_WORDS = ("model_type", "hidden_act", "architectures", "torch_dtype", "dtype", "_attn_implementation", "auto_map", "problem_type",
          "position_embedding_type", "transformers_version", "id2label", "quantization_config",
          "is_decoder", "tie_word_embeddings")  # fmt: skip
_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), nasty.anything.filter(lambda text: len(text) < 500)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)  # fmt: skip
_sizes = st.one_of(
    st.sampled_from((0, -1, 1, 3, 17, 10**3, 10**6, 10**9, 10**12, 10**30, 1e309, 0.5, "16", None, [], True)), _json
)
_families = st.sampled_from(
    ("bert", "roberta", "distilbert", "t5", "bart", "gpt2", "llama", "vit", "whisper", "clip", "nothing", "", "\ud800")
)

damages = st.one_of(
    st.tuples(st.just("set"), st.dictionaries(st.sampled_from(_SIZES), _sizes, min_size=1, max_size=2)),
    st.tuples(st.just("set"), st.dictionaries(st.sampled_from(_SIZES), _sizes, min_size=1, max_size=2)),
    st.tuples(st.just("set"), st.dictionaries(st.sampled_from(_WORDS), st.one_of(_json, nasty.near("gelu")), min_size=1, max_size=2)),
    st.tuples(st.just("set"), st.fixed_dictionaries({"model_type": _families})),
    st.tuples(st.just("tokenizer"), st.dictionaries(st.sampled_from(
        ("tokenizer_class", "model_max_length", "pad_token", "unk_token", "cls_token", "added_tokens_decoder", "backend", "auto_map")),
        st.one_of(_json, nasty.near("BertTokenizer", "PreTrainedTokenizerFast")), min_size=1, max_size=2)),
    st.tuples(st.just("vocabulary"), st.sampled_from(("empty", "large", "negative", "unknown type", "no model"))),
    st.tuples(st.just("cut"), st.tuples(st.sampled_from(_FILES), st.floats(0, 1))),
    st.tuples(st.just("change"), st.tuples(st.sampled_from(_FILES), st.floats(0, 1), st.binary(min_size=1, max_size=16))),
    st.tuples(st.just("text"), st.tuples(st.sampled_from(_FILES), st.sampled_from(
        ("", "{}", "[]", "null", "1", '"x"', "{" * 5000, "[" * 100_000, '{"a":' * 50_000, "9" * 5000,
 '{"model_type": "bert"}', "\0", "NaN")))),
    st.tuples(st.just("weights"), nasty.one_of([content for name, content in files.WHOLE if name.endswith(".safetensors")])),
    st.tuples(st.just("instead"), st.tuples(st.sampled_from(_FILES), st.sampled_from(("directory", "loop", "nothing", "queue")))),
)  # fmt: skip


def damage(folder: Path, damage_: Damage) -> None:
    """Apply the damage to a copy of an intact folder."""
    kind, value = damage_
    if kind in ("set", "tokenizer"):
        path = folder / ("config.json" if kind == "set" else "tokenizer_config.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | value))
    elif kind == "vocabulary":
        path = folder / "tokenizer.json"
        content = json.loads(path.read_text())
        vocabulary = content["model"]["vocab"]
        if value == "empty":
            content["model"]["vocab"] = {}
        elif value == "large":
            content["model"]["vocab"] = {word: number + 10**6 for word, number in vocabulary.items()}
        elif value == "negative":
            content["model"]["vocab"] = {word: -number for word, number in vocabulary.items()}
        elif value == "unknown type":
            content["model"]["type"] = "Nothing"
        else:
            del content["model"]
        path.write_text(json.dumps(content))
    elif kind == "weights":
        (folder / "model.safetensors").write_bytes(value)
    elif kind == "instead":
        name, thing = value
        path = folder / name
        path.unlink()
        if thing == "directory":
            path.mkdir()
        elif thing == "loop":
            path.symlink_to(path)
        elif thing == "queue":
            os.mkfifo(path)
    else:
        path = folder / value[0]
        content_before = path.read_bytes()
        if kind == "text":
            path.write_text(value[1])
        else:
            place = int(value[1] * len(content_before))
            rest = content_before[place + len(value[2]) :] if kind == "change" else b""
            path.write_bytes(content_before[:place] + (value[2] + rest if kind == "change" else b""))


def check(damage_: Damage, original: Path, folder: Path) -> str:
    """Find, load and read a damaged copy of the folder `whole`; "read" or "refused".

    Raises:
        AssertionError: a refusal that is not one line of at most 300 characters. Any other exception is a bug.
    """
    from isoviz.models.extract import layer_views

    shutil.copytree(original, folder)
    try:
        damage(folder, damage_)
        try:
            source = sources.resolve(str(folder))
            sources.longest_input(source)
            layer_views(
                source, [["the cat sat", "a dog"]], poolings=("mean",), layers="all", max_length=16, batch_size=2
            )
            sources.resolve(str(folder), "classification")
        except InputError as error:
            assert len(str(error)) <= LONGEST, f"{len(str(error))} characters: {error}"
            assert str(error).isprintable(), f"not one printable line: {str(error)!r}"
            return "refused"
        return "read"
    finally:
        shutil.rmtree(folder)
