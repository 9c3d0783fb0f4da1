"""The content of a checkpoint's files, by tensor name: is its pooler trained, has it output embeddings?"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation
from isoviz.errors import ModelError
from isoviz.models import folders
from isoviz.models.families import CLASSIFIERS, HeadLayout
from isoviz.models.sources import ModelSource

_POOLING_LAYERS: dict[HeadLayout, tuple[str, ...]] = {
    "pooler": ("pooler.dense", "pooler"),
    "dense": ("classifier.dense",),
    "relu": ("pre_classifier",),
}
_POOLING_NAME: dict[HeadLayout, str] = {
    "pooler": "the pooler",
    "dense": "the dense layer of the classification head",
    "relu": "the map before the classifier",
}
_OUTPUT_WEIGHTS = (
    "predictions.decoder.weight", "lm_head.decoder.weight", "vocab_projector.weight", "lm_head.weight", "embed_out.weight",
)  # fmt: skip
_LANGUAGE_MODEL = ("predictions.", "lm_head.", "vocab_transform.")
_ARCHITECTURES = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
_INPUT_WEIGHTS = (
    "embeddings.word_embeddings.weight", "wte.weight", "embed_tokens.weight", "embed_in.weight", "word_embeddings.weight",
    "shared.weight",
)  # fmt: skip


def folder_of(source: ModelSource) -> Path | None:
    """Where the files lie on this machine; None if they do not yet."""
    folder = Path(source.location)
    return folder if source.kind != "hub" and folder.is_dir() else None


def tensors(folder: Path) -> dict[str, Path]:
    """Name of each tensor → the file that holds it; the files' headers are read, not their weights."""
    return {name: path for path, stream in _opened(folder) for name in stream.keys()}  # noqa: SIM118


def parameters(source: ModelSource) -> int:
    """How many weights the files of a model on this machine hold, by their headers."""
    if (folder := folder_of(source)) is None:
        return 0
    return sum(
        math.prod(stream.get_slice(name).get_shape())
        for _, stream in _opened(folder)
        for name in stream.keys()  # noqa: SIM118
    )


def _opened(folder: Path) -> Iterator[tuple[Path, Any]]:
    from safetensors import safe_open

    for path in folders.weights(folder):
        with (
            input_validation.parsing(f"'{path}' cannot be read as safetensors", "model", ModelError),
            safe_open(path, framework="numpy") as stream,
        ):
            yield path, stream


def untrained_pooling(source: ModelSource) -> str | None:
    """A sentence if the weights between the last layer and the classifier are not in the checkpoint, else None."""
    kind, stored = _pooling(source, ".weight")
    if kind is None or stored:
        return None
    return f"{_POOLING_NAME[kind]} of this checkpoint is newly initialised: 'head' comes from random weights"


def pooling_as_initialised(source: ModelSource) -> str | None:
    """A sentence if the checkpoint has a pooling layer whose bias is exactly zero, as a new layer's is, else None.

    Training moves a bias; encoders that are trained on other vectors, as most sentence encoders are, ship such a layer.
    """
    kind, stored = _pooling(source, ".bias")
    if kind is None or not stored:
        return None
    from safetensors import safe_open

    for name, path in stored.items():
        with safe_open(path, framework="pt") as stream:
            if stream.get_tensor(name).any():
                return None
    return f"{_POOLING_NAME[kind]} of this checkpoint has a bias of exactly zero, as initialised: most likely it was never trained"


def _pooling(source: ModelSource, parameter: str) -> tuple[HeadLayout | None, dict[str, Path]]:
    """The kind of pooling layer of a family (None: it has none, or the files are not here), and its stored tensors."""
    folder = folder_of(source)
    kind = CLASSIFIERS.get(str((folders.config_of(folder) or {}).get("model_type"))) if folder else None
    if folder is None or kind not in _POOLING_LAYERS:
        return None, {}
    ends = tuple(name + parameter for name in _POOLING_LAYERS[kind])
    return kind, {name: path for name, path in tensors(folder).items() if name.endswith(ends)}


def output_embeddings(source: ModelSource) -> NDArray[np.float32] | None:
    """(vocabulary, width) W of the checkpoint's language-model head, the input embeddings where it is tied to them.

    None where the checkpoint has no such head.
    """
    folder = folder_of(source)
    if folder is None:
        return None
    files = tensors(folder)
    candidates = [name for name in files if name.endswith(_OUTPUT_WEIGHTS)]
    config = folders.config_of(folder) or {}
    named = config.get("architectures") or ()
    has_head = any(part in name for name in files for part in _LANGUAGE_MODEL)
    has_head = has_head or any(name.endswith(_ARCHITECTURES) for name in named)
    if not candidates and has_head and config.get("tie_word_embeddings", True):
        candidates = [name for name in files if name.endswith(_INPUT_WEIGHTS)]
    if not candidates:
        return None
    from safetensors import safe_open

    with safe_open(files[candidates[0]], framework="pt") as stream:  # numpy has no bfloat16
        weight: NDArray[np.float32] = stream.get_tensor(candidates[0]).float().numpy()
    return weight
