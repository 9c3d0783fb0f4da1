"""The page as a file, and Python code that computes the same."""

from __future__ import annotations

from typing import Final

import streamlit as st

from dashboard.explore.form import PREFIX, Pane
from dashboard.explore.points import cloud_points
from dashboard.explore.sections import measure_of_address
from dashboard.export import button
from dashboard.shared import exported, measures
from dashboard.shared.exported import ExportedVectors
from isoviz.exploring import shrinkage
from isoviz.exploring.maps import MapRequest
from isoviz.runs import citing
from isoviz.vectors.sets import VectorSet

_ORIGIN: Final = ("model_fingerprint", "model_revision", "data_fingerprint", "rows", "device", "isoviz", "warnings")
"""Facts of a view that say where its numbers come from."""


def section(panes: list[Pane], request: MapRequest) -> None:
    """The page as a file, and Python code for a notebook."""
    measure = measure_of_address()
    st.divider()
    st.caption("The address restores this page: all views, layer, map, colours, selected points and your sentences.")
    pane = panes[0]
    exported.note(PREFIX + "vectors", ExportedVectors(_vectors(pane)))
    name = "; ".join(pane.source for pane in panes)
    button.offer("Explore", name, code=lambda: _code(panes, measure, request))
    python_part = st.expander("The same in Python", icon=":material/code:", key=PREFIX + "python", on_change="rerun")
    if not python_part.open:  # the syntax highlighter is large and would load before the first picture
        return
    with python_part:
        for pane in panes:
            if pane.views > 1:
                st.markdown(f"**View {pane.number}**")
            st.code(python(pane, measure, request), language="python", wrap_lines=True)


def _vectors(pane: Pane) -> VectorSet:
    """The vectors of a view with their texts, labels and ids."""
    cloud = cloud_points(*pane.place)
    columns = cloud.table[[name for name in ("id", "label") if name in cloud.table]]
    return VectorSet(
        cloud.points,
        columns.assign(text=cloud.texts) if cloud.has_texts else columns,
        name=pane.source if pane.of_vectors else f"{pane.source} · layer {pane.layer}, {pane.pooling}",
    )


def _code(panes: list[Pane], measure: str, request: MapRequest) -> dict[str, str]:
    """For the page as a file: where the numbers come from, the same in Python, and BibTeX."""
    texts = {}
    for pane in panes:
        view = f", view {pane.number}" if pane.views > 1 else ""
        facts = [f"{name.replace('_', ' ')}: {pane.view.facts[name]}" for name in _ORIGIN if pane.view.facts.get(name)]
        texts[f"Computed from{view}"] = "\n".join([pane.about, *facts])
        texts[f"The same in Python{view}"] = python(pane, measure, request)
    requests = [pane.form.request for pane in panes if pane.form.request is not None]
    slugs = [metric.slug for metric in measures.of_clouds()]
    entries = citing.bibtex_of([(asked.model, asked.task, "") for asked in requests], slugs)
    return texts | {"BibTeX": "\n\n".join(entries.values())}


def python(pane: Pane, measure: str, request: MapRequest) -> str:
    """Code for a notebook that repeats a view: the measure, the spectrum, the map."""
    assert pane.form.request is not None
    view = pane.form.request
    default = type(view)(view.model, view.task)
    own_set = pane.form.own_set
    option_names = [name for name in view.as_json() if name not in ("model", "task", "allow_random")]
    options = "".join(
        f", {name}={getattr(view, name)!r}" for name in option_names if getattr(view, name) != getattr(default, name)
    )
    if own_set is not None:  # the notebook stores the set under its own key
        options = options.replace(f"data={view.data!r}", "data=key")
    cloud = f"{pane.layer}, {pane.pooling!r}"
    number = "entry.dimensions.mean_norm" if measure == "mean_norm" else f'entry.number("{measure}")'
    if measure == shrinkage.MEASURE:
        number += f', view.together and view.together.number("{measure}")'
    default_request = MapRequest()
    changed = "".join(
        f", {name}={value!r}"
        for name, value in request.as_json().items()
        if value != getattr(default_request, name) and name not in ("kind", "dimensions", "points")
    )
    settings = f'"{request.kind}", {request.dimensions}, points={request.points}{changed}'
    read = "" if own_set is None else {"vectors": "read", "texts": "read_texts"}[own_set.kind]
    lines = [
        *(["from isoviz import vectors"] if own_set else []),
        "from isoviz.exploring import jobs, maps",
        "from isoviz.exploring.request import ViewRequest",
        "",
        *([f"key = vectors.keep(vectors.{read}({own_set.name!r}))"] if own_set else []),
        f"view = jobs.obtain(ViewRequest({view.model!r}, {view.task!r}{options}))",
        f"entry, points = view.entry({cloud}), view.points({cloud})",
        f"print({number}, view.array({cloud}, 'ev')[:5])  # {measure}, explained variance",
        f"coordinates = maps.coordinates(points, maps.MapRequest({settings}))",
    ]
    return "\n".join(lines)
