"""What a checkpoint's own files hold, read by tensor name: is its pooler trained, has it output embeddings?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isoviz.models.families import CLASSIFIERS, Head
from isoviz.models.sources import ModelSource

_POOLING_WEIGHTS: dict[Head, tuple[str, ...]] = {
    "pooler": ("pooler.dense.weight", "pooler.weight"),
    "dense": ("classifier.dense.weight",),
    "relu": ("pre_classifier.weight",),
}
_POOLING_NAME: dict[Head, str] = {
    "pooler": "the pooler",
    "dense": "the dense layer of the classification head",
    "relu": "the map before the classifier",
}
_OUTPUT_WEIGHTS = ("predictions.decoder.weight", "lm_head.decoder.weight", "vocab_projector.weight")
_LANGUAGE_MODEL = ("predictions.", "lm_head.", "vocab_transform.")
_INPUT_WEIGHTS = "embeddings.word_embeddings.weight"


def folder_of(source: ModelSource) -> Path | None:
    """Where the files lie on this machine; None if they do not yet."""
    folder = Path(source.location)
    if folder.is_dir():
        return folder
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(source.location, "config.json")
    return Path(found).parent if isinstance(found, str) else None


def tensors(folder: Path) -> dict[str, Path]:
    """Name of each tensor → the file that holds it; the files' headers are read, not their weights."""
    from safetensors import safe_open

    found: dict[str, Path] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        with safe_open(path, framework="numpy") as stream:
            found |= dict.fromkeys(stream.keys(), path)
    return found


def untrained_pooling(source: ModelSource) -> str | None:
    """A sentence if the weights between the last layer and the classifier are not in the checkpoint, else None."""
    folder = folder_of(source)
    if folder is None:
        return None
    kind = CLASSIFIERS[_config(folder)["model_type"]]  # type: ignore[index]
    if any(name.endswith(_POOLING_WEIGHTS[kind]) for name in tensors(folder)):
        return None
    return f"{_POOLING_NAME[kind]} of this checkpoint is newly initialised: 'head' comes from random weights"


def output_embeddings(source: ModelSource) -> NDArray[np.float32] | None:
    """(vocabulary, width) W of the checkpoint's masked-language-model head, the input embeddings where it is tied to them.

    None where the checkpoint has no such head.
    """
    folder = folder_of(source)
    if folder is None:
        return None
    found = tensors(folder)
    own = [name for name in found if name.endswith(_OUTPUT_WEIGHTS)]
    has_head = any(part in name for name in found for part in _LANGUAGE_MODEL)
    if not own and has_head and _config(folder).get("tie_word_embeddings", True):
        own = [name for name in found if name.endswith(_INPUT_WEIGHTS)]
    if not own:
        return None
    from safetensors import safe_open

    with safe_open(found[own[0]], framework="pt") as stream:  # numpy has no bfloat16
        weight: NDArray[np.float32] = stream.get_tensor(own[0]).float().numpy()
    return weight


def _config(folder: Path) -> dict[str, object]:
    config: dict[str, object] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config
