"""Python side of the clustered |ρ| of one cloud of a view, drawn from the views route."""

from __future__ import annotations

import streamlit as st

from dashboard.components import bundle
from dashboard.server import routes

_mount = st.components.v2.component(
    "isoviz_cloud_matrix",
    html=bundle("cloud_matrix.html"),
    css=bundle("matrix.css"),
    js=bundle("feed.js", "look.js", "matrix_canvas.js", "saved_picture.js", "cloud_matrix.js"),
)

Place = tuple[str, int, str]
"""Key of a view, layer, pooling."""


def cloud_matrix(
    place: Place, *, order: Place | None = None, key: str, name: str, words: str, mean: str, about: str
) -> None:
    """Mount the matrix of one cloud; its bytes come from the route, not with the page.

    Args:
        order: the cloud that determines the order of dimensions; None for this one.
        name: name of saved files.
        words: alternative text, also the title of saved files.
        mean: mean |ρ| of distinct dimensions.
        about: caption of saved files, which describes the cloud.
    """
    _mount(
        key=key,
        data={
            "arrays": path_of(place),
            "order": path_of(order) if order else None,
            "name": name,
            "words": words,
            "mean": mean,
            "about": about,
        },
    )


def path_of(place: Place) -> str:
    """URL path of a cloud's arrays."""
    view, layer, pooling = place
    return f"{routes.PREFIX}/views/{view}/{layer}/{pooling}"
