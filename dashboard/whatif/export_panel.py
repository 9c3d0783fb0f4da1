"""Export of a chain: as a matrix for numpy, and as a sentence-transformers model; the page as a file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.components.lab import source as lab
from dashboard.export import button, provenance
from dashboard.shared import downloads, exported, forms, job_progress, resources, wording
from dashboard.shared.exported import ExportedVectors
from dashboard.whatif.drawing import View
from dashboard.whatif.form import PREFIX
from isoviz import reference
from isoviz.errors import InputError
from isoviz.posthoc.export import as_numpy
from isoviz.runs import citing
from isoviz.runs.examples import is_example
from isoviz.vectors.sets import VectorSet
from isoviz.whatif import chains, export
from isoviz.whatif.engine import Full, instant_metrics, slow_metrics
from isoviz.whatif.request import request_for

KEY = PREFIX + "take_home"


def draw(view: View, full: Full, verdicts: tuple[str, ...]) -> None:
    """Buttons that export a chain; its matrix is computed on demand. `full` and `verdicts` describe the chain in the export."""
    st.header("Export", anchor=False)
    engine, steps = view.engine, view.steps
    if not steps:
        st.caption("Add a transform to export it.")
        return
    cloud = view.embeddings.cloud if view.run else ""
    prepared = f"{engine.key}|{cloud}|{chains.write(steps)}"  # by key, because two sets may share a name
    if st.session_state.get(KEY, ("",))[0] != prepared:
        st.caption(
            "Apply this chain anywhere: as a matrix with six lines of numpy, or as a sentence-transformers model."
        )
        if not st.button("Prepare files", key=KEY + "_prepare", icon=":material/inventory_2:"):
            return
        try:
            st.session_state[KEY] = (prepared, *export.matrix_of(engine, steps, full))
        except InputError as error:
            forms.show_error(forms.sentence(error))
            return
    _, affine, origin = st.session_state[KEY]
    origin = replace(origin, verdicts=verdicts)
    file = downloads.file_name(view.run.id if view.run else view.vectors.name, *(step.slug for step in steps))
    st.caption("\n".join(f"- {wording.plain(effect.words)}" for effect in origin.effects))
    downloads.button("Matrix (numpy)", functools.partial(as_numpy, affine, origin), f"{file}.zip", key=KEY + "_matrix")
    try:
        request = export.request(_model_spec(view), affine, origin)
    except InputError as error:
        st.caption(f":material/info: No sentence-transformers model: {wording.plain(forms.sentence(error))}")
        return
    job_progress.offer_file(
        export.EXPORT,
        *request,
        label="Model (sentence-transformers)",
        build="Build the model",
        file=f"{file}-model.zip",
        key=KEY + "_model",
        about=lambda facts: (
            f"Verified: its vectors differ from these by at most {facts['deviation']:.0e} of their length."
        ),
    )


def offer_page(view: View) -> None:
    """The page as a file, with the vectors if the visitor wants."""
    vectors = _vectors(view)
    exported.note(PREFIX + "vectors", ExportedVectors(vectors, lab.transforms(view.steps)))
    button.offer("What-if", vectors.name, code=lambda: _code(view, vectors))


def _vectors(view: View) -> VectorSet:
    """The set of vectors; of a run, those of its validation rows with their labels."""
    if view.run is None:
        return view.vectors
    run = view.embeddings
    columns = pd.DataFrame({"text": run.texts})
    if run.facts["kind"] == "classification":
        columns["label"] = [run.facts["label_names"][int(code)] for code in run.labels]
    return VectorSet(run.validation, columns, name=view.run.id)


def _code(view: View, vectors: VectorSet) -> dict[str, str]:
    """For the page as a file: where the numbers come from, what computes the same, and BibTeX."""
    applies = bool(view.steps) and not any(step.kind.needs for step in view.steps)
    chain, metrics = chains.write(view.steps), (*instant_metrics(), *slow_metrics())
    facts = [
        f"{vectors.name}: n = {vectors.n}, d = {vectors.d}",
        *(f"{name}: {fact}" for name, fact in vectors.facts.items()),
    ]
    of_run = provenance.of_runs([view.run], metrics) if view.run else {"Computed from": "\n".join(facts)}
    entries = of_run.pop("BibTeX", None) or "\n\n".join(citing.bibtex_of([], [one.slug for one in metrics]).values())
    of_steps = dict.fromkeys(reference.bibtex_of(step.kind) for step in view.steps)
    return of_run | {
        "Chain of transforms": chain,
        "Apply them": f"isoviz transform --chain '{chain}' --in vectors.npy --out transformed.npy" if applies else "",
        "BibTeX": "\n\n".join(filter(None, (*of_steps, entries))),
    }


def _model_spec(view: View) -> Mapping[str, Any]:
    """Specification of the exported model. Raises `InputError` if there is none."""
    if view.run is None:
        return export.spec_of_model(view.vectors.facts)
    if is_example(view.run.id):
        raise InputError("examples ship without weights", field="run")
    request = request_for(view.run, resources.library().folder_of(view.run.id))
    shown = view.embeddings
    return export.spec_of_run(view.run.config, Path(request.checkpoint), shown.cloud, shown.key)
