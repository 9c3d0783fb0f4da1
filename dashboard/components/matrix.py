"""Python side of the correlation matrices: of one cloud of a view, and of a run epoch by epoch, drawn from the routes of arrays."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

import streamlit as st

from dashboard.components import bundle
from dashboard.server import arrays, routes
from dashboard.shared import explanations, exported
from dashboard.shared.exported import ExportedMatrix
from isoviz.runs.rows import RunRow

HTML: Final = "cloud_matrix.html"
CSS: Final = "matrix.css"
SCRIPTS: Final = ("look.js", "matrix_canvas.js", "saved_picture.js", "cloud_matrix.js")

_mount = st.components.v2.component(
    "isoviz_cloud_matrix", html=bundle(HTML), css=bundle(CSS), js=bundle("feed.js", *SCRIPTS)
)

Place = tuple[str, int, str]
"""Key of a view, layer, pooling."""


def cloud_matrix(
    place: Place | Mapping[str, bytes],
    *,
    key: str,
    name: str,
    words: str,
    mean: str,
    about: str,
    compact: bool = False,
) -> None:
    """Mount the matrix of one cloud; its bytes come from the route, not with the page, unless they are given.

    Args:
        place: of a cloud of a view; or `matrix`, `order` and `sigma` as the route would send them.
        name: name of saved files.
        words: alternative text, also the title of saved files.
        mean: mean |ρ| of distinct dimensions.
        about: caption of saved files, which describes the cloud.
        compact: a small picture with its buttons beside it.
    """
    facts = {"name": name, "words": words, "mean": mean, "about": about}
    if isinstance(place, Mapping):
        given = {name: base64.b64encode(content).decode() for name, content in place.items()} | facts
        exported.note(key, ExportedMatrix(words, lambda: given))
        _mount(key=key, data={"inside": True, "compact": compact, **given})
        return

    def inside() -> dict[str, str]:
        """The arrays that the component would request, in base64."""
        names = ("matrix", "order", "sigma")
        return facts | {name: base64.b64encode(arrays.array(*place, name)).decode() for name in names}

    exported.note(key, ExportedMatrix(words, inside))
    _mount(key=key, data={"arrays": path_of(place), "compact": compact, **facts})


def path_of(place: Place) -> str:
    """URL path of a cloud's arrays."""
    view, layer, pooling = place
    return f"{routes.PREFIX}/views/{view}/{layer}/{pooling}"


_mount_run = st.components.v2.component(
    "isoviz_matrix",
    html=bundle("matrix.html"),
    css=bundle("help.css", "matrix.css"),
    js=bundle("fold.js", "recording.js", "feed.js", "look.js", "matrix_canvas.js", "matrix.js"),
    isolate_styles=False,  # shares the poll of the live lines, so it lives in the same document
)


def matrix(run: RunRow, *, key: str) -> None:
    """Mount the clustered |ρ| matrix of a run's head cloud; it follows the newest epoch until the user selects another."""
    _mount_run(
        key=key,
        data={
            "run": run.id,
            "events": f"{routes.PREFIX}/events",
            "arrays": f"{routes.PREFIX}/arrays",
            "help": explanations.MATRIX.plain(),
            "seen": run.status,
        },
    )
