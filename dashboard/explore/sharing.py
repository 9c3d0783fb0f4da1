"""The link of Explore, and the same in Python."""

from __future__ import annotations

import streamlit as st

from dashboard.components.copy_link import copy_link
from dashboard.explore.form import PREFIX, ChosenCloud
from dashboard.explore.sections import measure_of_address
from isoviz.exploring import shrinkage
from isoviz.exploring.maps import MapRequest


def take_along(chosen: list[ChosenCloud], request: MapRequest) -> None:
    """The link, and a few lines for a notebook."""
    st.subheader("Share and reproduce", anchor="share")
    st.caption("The link restores this page: all views, layer, map, colours, selected points and your sentences.")
    copy_link(key=PREFIX + "link")
    python_part = st.expander("The same in Python", icon=":material/code:", key=PREFIX + "python", on_change="rerun")
    if not python_part.open:  # what colours code is large, and would be loaded before the first picture
        return
    with python_part:
        for one in chosen:
            if one.views > 1:
                st.markdown(f"**View {one.number}**")
            st.code(python(one, measure_of_address(), request), language="python", wrap_lines=True)


def python(one: ChosenCloud, measure: str, request: MapRequest) -> str:
    """Lines that do again in a notebook what a view shows: the measure, the spectrum, the map."""
    assert one.filled.request is not None
    view = one.filled.request
    default = type(view)(view.model, view.task)
    taken = one.filled.taken
    named = ("data", "split", "max_rows", "max_length", "seed", "direction", "prompt", "truncate")
    more = "".join(
        f", {name}={getattr(view, name)!r}" for name in named if getattr(view, name) != getattr(default, name)
    )
    if taken is not None:  # by its content, whatever the key
        more = more.replace(f"data={view.data!r}", "data=key")
    cloud = f"{one.layer}, {one.pooling!r}"
    number = "entry.dimensions.mean_norm" if measure == "mean_norm" else f'entry.number("{measure}")'
    if measure == shrinkage.MEASURE:
        number += f', view.together and view.together.number("{measure}")'
    plain = MapRequest()
    changed = "".join(
        f", {name}={value!r}"
        for name, value in request.as_json().items()
        if value != getattr(plain, name) and name not in ("kind", "dimensions", "points")
    )
    settings = f'"{request.kind}", {request.dimensions}, points={request.points}{changed}'
    read = "" if taken is None else {"vectors": "read", "texts": "read_texts"}[taken.kind]
    lines = [
        *(["from isoviz import vectors"] if taken else []),
        "from isoviz.exploring import jobs, maps",
        "from isoviz.exploring.request import ViewRequest",
        "",
        *([f"key = vectors.keep(vectors.{read}({taken.name!r}))"] if taken else []),
        f"view = jobs.obtain(ViewRequest({view.model!r}, {view.task!r}{more}))",
        f"entry, points = view.entry({cloud}), view.points({cloud})",
        f"print({number}, view.array({cloud}, 'ev')[:5])  # {measure}, explained variance",
        f"coordinates = maps.coordinates(points, maps.MapRequest({settings}))",
    ]
    if request.film:
        picked = "layer[maps.drawn(len(layer), request)]"
        fitted = f"maps.aligned_{request.kind}([{picked} for layer in layers]{', request' if request.kind == 'umap' else ''})"
        lines[-1:] = [
            f"request = maps.MapRequest({settings})",
            f"layers = [view.points(number, {one.pooling!r}) for number in {one.layers!r}]",
            f"film = {fitted}",
        ]
    return "\n".join(lines)
