"""Export of a chain: as a matrix for numpy, and as a sentence-transformers model."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard.inputs import model_form
from dashboard.shared import built_file, downloads, forms, wording
from dashboard.whatif.form import PREFIX
from isoviz.errors import InputError
from isoviz.posthoc import Affine
from isoviz.posthoc.export import Origin, as_numpy
from isoviz.whatif import chains, export
from isoviz.whatif.chains import Step

KEY = PREFIX + "take_home"
_POOLINGS = ("sentence", "mean", "cls", "last")


def draw(
    name: str,
    content: str,
    steps: Sequence[Step],
    make: Callable[[], tuple[Affine, Origin]],
    model_spec: Callable[[], Mapping[str, Any]],
    rows: NDArray[np.floating] | None = None,
) -> None:
    """Buttons that export a chain; its matrix is computed on demand.

    Args:
        name: name of the vectors, for the file names.
        content: key of the vectors, because two sets may share a name.
        make: returns the matrix and its origin; raises `InputError` for a chain that is not affine.
        model_spec: returns the model's specification (`isoviz.whatif.export`); raises `InputError` if there is no model.
        rows: (n, d) the fit set, if the visitor names its model.
    """
    st.header("Export", anchor=False)
    if not steps:
        st.caption("Add a transform to export it.")
        return
    prepared = f"{content}|{chains.write(steps)}"
    if st.session_state.get(KEY, ("",))[0] != prepared:
        st.caption(
            "Apply this chain anywhere: as a matrix with six lines of numpy, or as a sentence-transformers model."
        )
        if not st.button("Prepare files", key=KEY + "_prepare", icon=":material/inventory_2:"):
            return
        try:
            st.session_state[KEY] = (prepared, *make())
        except InputError as error:
            forms.show_error(forms.sentence(error))
            return
    _, affine, origin = st.session_state[KEY]
    file = downloads.file_name(name, *(step.slug for step in steps))
    st.caption("\n".join(f"- {wording.plain(effect.words)}" for effect in origin.effects))
    downloads.button("Matrix (numpy)", functools.partial(as_numpy, affine, origin), f"{file}.zip", key=KEY + "_matrix")
    try:
        built_file.offer(
            export.EXPORT,
            *export.request(model_spec(), affine, origin, rows),
            label="Model (sentence-transformers)",
            build="Build the model",
            file=f"{file}-model.zip",
            key=KEY + "_model",
            about=lambda facts: (
                f"Verified: its vectors differ from these by at most {facts['deviation']:.0e} of their length."
                if not facts.get("warning")
                else f":material/warning: Probably another model: {wording.plain(facts['warning'])}"
            ),
        )
    except InputError as error:
        st.caption(f":material/info: No sentence-transformers model: {wording.plain(forms.sentence(error))}")


def model_fields(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Facts of a set of vectors with its model; for vectors from a file, fields ask for the model and its pooling."""
    if "model" in facts:
        return facts
    left, right = st.columns([3, 2])
    with left:
        name = st.selectbox(
            "Which model made these vectors?",
            model_form.options(),
            index=None,
            key=KEY + "_made_by",
            accept_new_options=True,
            placeholder=model_form.PLACEHOLDER,
            help=model_form.HELP,
        )
        source = model_form.show_source(name) if name else None
    pooling = right.selectbox(
        "Pooling",
        _POOLINGS,
        index=None,
        key=KEY + "_pooling",
        placeholder="The model's own",
        help="sentence: the sentence-transformers model's vector. mean, cls, last: of the last layer's tokens.",
    )
    if source is None:
        return facts
    st.caption("The export repeats this model and adds the transform. IsoViz cannot check that it made your vectors.")
    return {"model": source.name, "pooling": pooling}
