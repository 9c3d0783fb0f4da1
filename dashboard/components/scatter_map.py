"""Python side of the map of a cloud: a figure, and the line that the user draws around points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import streamlit as st

from dashboard.components import bundle
from dashboard.components.matrix import Place, path_of
from dashboard.server import routes
from dashboard.shared import exported, theme
from dashboard.shared.exported import ExportedFigure

_SCRIPTS = ["feed", "look", "plotly_script", "map_points", "painted_points", "saved_picture", "scatter_map"]
_mount = st.components.v2.component(
    "isoviz_scatter_map",
    html=bundle("scatter_map.html"),
    css=bundle("scatter_map.css"),
    js=bundle(*(f"{name}.js" for name in _SCRIPTS)),
    isolate_styles=False,  # plotly.js writes its styles into the document's head
)


def scatter_map(
    figure: go.Figure,
    *,
    key: str,
    name: str,
    about: str,
    words: str,
    place: Place,
    revision: str,
    height: int,
    solid: bool,
    selection: Sequence[tuple[float, float]] = (),
    on_drawn: Callable[[], None],
) -> None:
    """Mount a map. The same `revision` keeps zoom and camera, even if the rest of the figure changes.

    Args:
        name: name of saved files.
        about: caption of saved files, which describes the cloud.
        words: alternative text.
        place: key of the cloud, with which the browser requests texts that the figure lacks.
        solid: three-dimensional, so the user cannot draw around points.
        selection: corners of the current line around points.
        on_drawn: called after the user has drawn another line; `drawn(key)` returns its corners.
    """
    spec = figure.to_json()
    exported.note(key, ExportedFigure("", spec, words, (about,), of_rows=True))
    _mount(
        key=key,
        data={
            "figure": spec,
            "plotly": routes.plotly_path(),
            "basic": routes.basic_plotly_path(),
            "palettes": theme.POINT_PALETTES,
            "scales": theme.POINT_SCALES,
            "name": name,
            "about": about,
            "words": words,
            "texts": f"{path_of(place)}/texts",
            "revision": revision,
            "height": height,
            "solid": solid,
            "selection": [list(corner) for corner in selection],
        },
        on_polygon_change=on_drawn,
    )


def drawn(key: str) -> list[tuple[float, float]]:
    """Corners of the line drawn on the map with this key, for use in `on_drawn`; empty if the line was removed."""
    state = st.session_state.get(key)
    corners = getattr(state, "polygon", None) or []
    return [(float(x), float(y)) for x, y in corners]
