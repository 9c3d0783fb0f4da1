"""The embedded default: a tiny pretrained encoder, a tiny encoder-decoder and generated tasks, with the scripts that make them. No torch
here.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent
_MODELS = {"demo/tiny-bert": _FOLDER / "tiny-bert", "demo/tiny-bart": _FOLDER / "tiny-bart"}


def bundled_models() -> tuple[str, ...]:
    """Slugs of the models that come with the package."""
    return tuple(_MODELS)


def bundled_model_dir(slug: str) -> Path:
    """The transformers directory of a bundled model; ValueError for an unknown slug."""
    if slug not in _MODELS:
        raise ValueError(f"unknown bundled model {slug!r}; there are {', '.join(_MODELS)}")
    return _MODELS[slug]
