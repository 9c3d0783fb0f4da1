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

CAUSAL: Final = ("gpt2", "gpt_neox", "llama", "mistral", "opt", "qwen2", "qwen3")
"""Decoders that can be fine-tuned: their classifier is a linear layer without bias on one vector per row."""

CausalPooling = Literal["last", "mean", "echo"]
"""That vector. last: of the row's last token. mean: of all its tokens. echo: the row is read twice, and the mean is that of its second
occurrence, whose tokens have seen all of it (Springer et al., arXiv:2402.15449; the authors also put words around both, and pool the
mean or the last token)."""

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
    """The families that can carry a head of that kind."""
    if kind == "seq2seq":
        return SEQ2SEQ
    return frozenset(CLASSIFIERS) | (frozenset(CAUSAL) if kind in ("classification", "regression") else frozenset())


Architecture = Literal["encoder", "decoder", "encoder-decoder"]

DECODERS: Final = frozenset({
    "bloom", "codegen", "cohere", "falcon", "gemma", "gemma2", "gemma3_text", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox",
    "gptj", "granite", "llama", "mistral", "mixtral", "mpt", "olmo", "olmo2", "openai-gpt", "opt", "phi", "phi3", "qwen2",
    "qwen3", "smollm3", "stablelm", "starcoder2", "xglm",
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
    listed = config.get("architectures")
    named = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if family in DECODERS or config.get("is_decoder"):
        return "decoder"
    is_known = family in CLASSIFIERS
    return "decoder" if not is_known and any(name.endswith(_LANGUAGE_MODELS) for name in named) else "encoder"


def heads(family: str) -> tuple[HeadKind, ...]:
    """The head kinds that a family can be fine-tuned with; none for one that can only be measured and explored."""
    return tuple(kind for kind in HEAD_KINDS if family in families_of(kind))


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
