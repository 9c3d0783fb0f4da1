"""Plain facts about model families and their `config.json`, no torch: how they read a text, which heads and poolings they can have."""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from isoviz.errors import repr_of, shortened
from isoviz.tasks.protocol import HEAD_KINDS, HeadKind

HeadLayout = Literal["pooler", "dense", "gelu", "relu", "context", "norm", "end"]

CLASSIFIERS: dict[str, HeadLayout] = {
    "bert": "pooler",
    "albert": "pooler",
    "roberta": "dense",
    "xlm-roberta": "dense",
    "camembert": "dense",
    "mpnet": "dense",
    "distilbert": "relu",
    "electra": "gelu",
    "deberta-v2": "context",
    "modernbert": "norm",
    "bart": "end",
    "mbart": "end",
    "t5": "end",
}
"""How a family gets from the last layer to the vector that feeds the classifier's output layer.

pooler: the encoder's own pooler (dense + tanh on the first token). dense: dropout, dense and tanh inside the classification
head; gelu: the same with GELU. relu: a linear map and ReLU on the first token. context: a pooler beside the encoder. norm:
dense, activation and layer norm on the first token or the mean. end: dropout, dense and tanh on what the decoder makes of the
text's end token, having read the text itself one place to the right.
"""

CausalPooling = Literal["last", "mean"]
"""The vector of a decoder's row that its output layer reads: of the row's last token, or the mean of all its tokens."""

SEQ2SEQ: frozenset[str] = frozenset({"bart", "mbart", "t5", "marian"})
"""Families that write a text of their own."""

_RESERVED_POSITIONS: Final = dict.fromkeys(
    ["roberta", "xlm-roberta", "camembert", "data2vec-text", "esm", "ibert", "longformer", "luke", "mpnet",
     "roberta-prelayernorm", "xlm-roberta-xl", "xmod"], 2,
)  # fmt: skip
"""Position embeddings that a family keeps for padding: its longest input is that much shorter than their number."""

CITES: dict[str, tuple[str, ...]] = {
    "bert": ("devlin2019bert",),
    "albert": ("lan2020albert",),
    "roberta": ("liu2019roberta",),
    "xlm-roberta": ("conneau2020unsupervised",),
    "camembert": ("martin2020camembert",),
    "mpnet": ("song2020mpnet",),
    "distilbert": ("sanh2019distilbert",),
    "electra": ("clark2020electra",),
    "deberta-v2": ("he2023debertav3",),
    "modernbert": ("warner2024modernbert",),
    "bart": ("lewis2020bart",),
    "mbart": ("liu2020multilingual",),
    "t5": ("raffel2020exploring",),
    "marian": ("junczys2018marian",),
    "gpt2": ("radford2019language",),
    "gpt_neox": ("black2022gpt",),
    "llama": ("touvron2023llama",),
    "mistral": ("jiang2023mistral",),
    "opt": ("zhang2022opt",),
    "qwen2": ("yang2024qwen2",),
    "qwen3": ("yang2025qwen3",),
}
"""Keys of a family's papers in `isoviz.bibliography`."""


def families_of(kind: HeadKind) -> frozenset[str]:
    """The families of which transformers has a head of that kind that is known here."""
    return SEQ2SEQ if kind == "seq2seq" else frozenset(CLASSIFIERS)


Architecture = Literal["encoder", "decoder", "encoder-decoder"]

DECODERS: Final = frozenset({
    "afmoe", "apertus", "arcee", "aria_text", "axk2", "bailing_hybrid", "bamba", "beam", "biogpt", "bitnet", "bloom",
    "clip_text_model", "codegen", "cohere", "cohere2", "cohere2_moe", "ctrl", "cwm", "deepseek_v2", "deepseek_v3",
    "deepseek_v32", "deepseek_v4", "diffllama", "doge", "dots1", "dots3_note_text", "ernie4_5", "ernie4_5_moe", "exaone4",
    "exaone_moe", "falcon", "falcon_h1", "falcon_mamba", "flex_olmo", "flint", "gemma", "gemma2", "gemma3_text",
    "gemma3n_text", "gemma4_text", "gemma4_unified_text", "glm", "glm4", "glm4_moe", "glm4_moe_lite", "glm5_next_text",
    "glm_moe_dsa", "gpt-sw3", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_neox_japanese", "gpt_oss", "gptj",
    "granite", "granite_docling_text", "granite_swa", "granitemoe", "granitemoe_swa", "granitemoehybrid",
    "granitemoeshared", "helium", "hrm_text", "hunyuan_v1_dense", "hunyuan_v1_moe", "hy_v3", "hy_v4", "hyperclovax",
    "inkling2_text", "inkling_text", "internlm3", "iquestcoder", "jais2", "jamba", "jetmoe", "kimi_linear", "kolibri1",
    "laguna", "lfm2", "lfm2_moe", "lfm3", "llama", "llama4_text", "longcat_flash", "mamba", "mamba2", "mellum",
    "mimo_v2_flash", "minicpm3", "minimax", "minimax_m2", "minimax_m3_vl_text", "ministral", "ministral3", "mistral",
    "mistral4", "mistral_large4_text", "mixtral", "modernbert-decoder", "molmo2_text", "mpt", "muse_glimmer_text",
    "muse_spark_text", "nanochat", "nemotron", "nemotron_h", "olmo", "olmo2", "olmo3", "olmo_hybrid", "olmoe",
    "openai-gpt", "opt", "persimmon", "phi", "phi3", "phimoe", "qwen2", "qwen2_moe", "qwen3", "qwen3_5_moe_text",
    "qwen3_5_text", "qwen3_moe", "qwen3_next", "qwen3_vl_moe_text", "qwen3_vl_text", "qwen4_exp_text", "recurrent_gemma",
    "rwkv", "seed_oss", "smollm3", "solar_open", "stablelm", "starcoder2", "vaultgemma", "xglm", "xlstm", "youtu",
    "zamba", "zamba2",
})  # fmt: skip
"""Families whose tokens see only what stands before them. Others are known by the architecture that their checkpoint names."""

ENCODER_DECODERS: Final = frozenset({
    "bart", "bigbird_pegasus", "blenderbot", "fsmt", "led", "longt5", "m2m_100", "marian", "mbart", "mt5", "mvp", "pegasus",
    "plbart", "prophetnet", "switch_transformers", "t5", "umt5",
})  # fmt: skip

_WIDTHS: Final = ("hidden_size", "d_model", "n_embd", "dim")
_NARROW: Final = ("embedding_size", "true_hidden_size")
_VOCABULARY: Final = ("vocab_size",)
_INNER: Final = ("intermediate_size", "d_ff", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim")
_LAYERS: Final = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers")
_HEADS: Final = (
    "num_attention_heads", "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads",
)  # fmt: skip
_POSITIONS: Final = ("max_position_embeddings", "n_positions")
_SIZES: Final[Mapping[tuple[str, ...], int]] = {
    (*_WIDTHS, *_NARROW, *_INNER): 10**6, _VOCABULARY: 10**7, _LAYERS: 1000, _HEADS: 10**4, _POSITIONS: 10**8,
}  # fmt: skip
"""What a configuration calls its sizes → the largest that is a size and no slip."""

_LANGUAGE_MODELS: Final = ("ForCausalLM", "LMHeadModel")


def architecture(config: Mapping[str, Any]) -> Architecture:
    """The architecture of a model, by the content of its `config.json`."""
    family = config.get("model_type")
    if family in ENCODER_DECODERS or config.get("is_encoder_decoder"):
        return "encoder-decoder"
    if config.get("use_bidirectional_attention") in (True, "all"):  # EmbeddingGemma
        return "encoder"
    listed = config.get("architectures")
    named = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if family in DECODERS or config.get("is_decoder"):
        return "decoder"
    is_known = family in CLASSIFIERS
    return "decoder" if not is_known and any(name.endswith(_LANGUAGE_MODELS) for name in named) else "encoder"


def heads(config: Mapping[str, Any]) -> tuple[HeadKind, ...]:
    """The head kinds that a model can be fine-tuned with, by the content of its `config.json`; none if it can only be measured.

    transformers' own heads where they are known, else `isoviz.models.pooled` for every text model that is no encoder-decoder.
    """
    family = config.get("model_type")
    two_sided = architecture(config) == "encoder-decoder"
    plain: tuple[HeadKind, ...] = ("classification", "regression", "embedding")
    if is_composite(config) or (two_sided and family not in CLASSIFIERS):
        plain = ()
    return tuple(
        kind
        for kind in HEAD_KINDS
        if (kind in plain or family in families_of(kind)) and not (two_sided and kind == "embedding")
    )


def is_composite(config: Mapping[str, Any]) -> bool:
    """Whether a model joins several networks, such as one for texts and one for images."""
    return any(isinstance(part, Mapping) and "model_type" in part for part in config.values())


def impossible_size(config: Mapping[str, Any], stored: int | None = None) -> str | None:
    """The first size in a `config.json` that no network can have, as the end of a sentence that begins with the model; else None.

    transformers would build such a network first, for hours or in all of the memory, and compare it with the weights then.

    Args:
        stored: bytes of the weights, if they are known: a matrix that is larger cannot be in them.
    """
    for names, most in _SIZES.items():
        for name in names:
            size = config.get(name)
            if size is None or isinstance(size, list):  # some families have one per layer
                continue
            if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= most:
                return f"has {name} = {shortened(repr_of(size))} in its config.json (expected a whole number, 1 to {most:,})"
    width = next((config[name] for name in (*_NARROW, *_WIDTHS) if isinstance(config.get(name), int)), 1)
    for name in (*_VOCABULARY, *_INNER):
        size = config.get(name)
        if stored is not None and isinstance(size, int) and width * size > 2 * stored:
            return f"has {name} = {size:,} in its config.json, which does not fit into its {stored:,} bytes of weights"
    return None


def longest_input(config: Mapping[str, Any]) -> int | None:
    """Tokens that a model can read at most; None where its configuration does not say."""
    positions = next((config[name] for name in _POSITIONS if config.get(name)), None)
    if not isinstance(positions, int):
        return None
    return positions - _RESERVED_POSITIONS.get(str(config.get("model_type")), 0)


def needs_own_code(config: Mapping[str, Any]) -> bool:
    """Whether a model needs its own code to load, because transformers has no class for it."""
    family = str(config.get("model_type", ""))
    is_known = family in DECODERS | ENCODER_DECODERS | frozenset(CLASSIFIERS)
    return bool(config.get("auto_map")) and not is_known and not _in_transformers(family)


@functools.cache
def _in_transformers(family: str) -> bool:
    """Whether the library has a folder for the family; importing it to ask would cost a page a second."""
    if not re.fullmatch(r"[\w-]{1,100}", family):
        return False
    spec = importlib.util.find_spec("transformers")
    places = [] if spec is None else spec.submodule_search_locations or []
    return any((Path(place) / "models" / family.replace("-", "_").lower()).is_dir() for place in places)
