"""Python side of the map of a cloud: a figure to draw, and what someone draws around its points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go
import streamlit as st

from dashboard import resources, routes, theme, tokens, view_arrays
from dashboard.components import bundle
from dashboard.components.cloud_matrix import Place, path_of

_mount = st.components.v2.component(
    "isoviz_scatter_map",
    html=bundle("scatter_map.html"),
    css=bundle("scatter_map.css"),
    js=bundle(
        "feed.js",
        "look.js",
        "plotly_script.js",
        "map_points.js",
        "canvas_fit.js",
        "symbols.js",
        "webgl_points.js",
        "painted_points.js",
        "saved_picture.js",
        "scatter_map.js",
    ),
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
    frames: Sequence[str] = (),
    frame: int = 0,
    revision: str,
    height: int,
    solid: bool,
    selection: Sequence[tuple[float, float]] = (),
    on_drawn: Callable[[], None],
) -> None:
    """Mount a map. Zoom and camera stay while `revision` stays, whatever else of the figure changes.

    Args:
        name: of the files that its buttons save.
        about: a line below the picture in these files: which cloud it is of.
        words: what it shows, for those who do not see it.
        place: of the cloud; the browser asks its texts there where the figure has none.
        frames: names of the layers through which the points move, if they do; `frame` is the one that the figure shows.
        solid: it has three dimensions, and nothing can be drawn around its points.
        selection: corners of the line that is drawn around points now.
        on_drawn: called when someone drew another line; `drawn(key)` tells its corners.
    """
    _mount(
        key=key,
        data={
            "figure": figure.to_json(),
            "plotly": routes.plotly_path(),
            "basic": routes.basic_plotly_path(),
            "palettes": theme.POINT_PALETTES,
            "scales": theme.POINT_SCALES,
            "name": name,
            "about": about,
            "words": words,
            "frames": list(frames),
            "frame": frame,
            "texts": f"{path_of(place)}/texts",
            "token": tokens.issue(resources.store().folder, [view_arrays.subject(place[0])]),
            "revision": revision,
            "height": height,
            "solid": solid,
            "selection": [list(corner) for corner in selection],
        },
        on_polygon_change=on_drawn,
    )


def drawn(key: str) -> list[tuple[float, float]]:
    """The corners that were drawn on the map of this key, inside its `on_drawn`; none if the line was taken away."""
    state = st.session_state.get(key)
    corners = getattr(state, "polygon", None) or []
    return [(float(x), float(y)) for x, y in corners]
