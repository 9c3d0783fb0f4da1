"""Descriptions of the bundled models, read from their files."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import streamlit as st

from dashboard.shared import wording
from isoviz import demo


def describe() -> None:
    """One line per model."""
    for name in demo.bundled_models():
        facts = model_facts(name)
        st.caption(
            f"**{wording.plain(name)}** (bundled): a small {facts['family']} for the generated demo tasks, "
            f"{facts['parameters'] / 1e6:.1f} million parameters, {facts['layers']} layers × {facts['width']} dimensions, "
            f"{facts['vocabulary']:,} word pieces. For real text, choose another encoder."
        )


@st.cache_data(show_spinner=False)
def model_facts(name: str) -> dict[str, Any]:
    """Family, parameters, layers, width, vocabulary and bytes of a bundled model, from its configuration and weights file."""
    from safetensors import safe_open

    folder = demo.bundled_model_dir(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = folder / "model.safetensors"
    with safe_open(weights, framework="np") as file:
        count = sum(int(np.prod(file.get_slice(key).get_shape())) for key in file.keys())  # noqa: SIM118 (no mapping)
    return {
        "family": config["model_type"].upper(),
        "parameters": count,
        # encoder-decoders count encoder and decoder layers separately
        "layers": config.get("num_hidden_layers") or config["encoder_layers"] + config["decoder_layers"],
        "width": config.get("hidden_size") or config["d_model"],
        "vocabulary": config["vocab_size"],
        "bytes": weights.stat().st_size,
    }
