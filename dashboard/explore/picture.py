"""The map of one view as a picture, and its points as files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from dashboard import downloads, wording
from dashboard.components.scatter_map import scatter_map
from dashboard.explore import map_plot, own_sentences
from dashboard.explore.lasso import Marks, component, corners, remember
from dashboard.explore.layouts import Cloud, Layout
from dashboard.explore.shown import Shown, cloud_file
from isoviz.exploring import selection
from isoviz.exploring.desk import Reply
from isoviz.exploring.maps import MapRequest

UNCOLOURED = "nothing"
"""What is chosen in the field of colours for none."""


def picture(
    one: Shown,
    cloud: Cloud,
    layout: Layout,
    request: MapRequest,
    colour: str,
    reply: Reply | None,
    placed: NDArray[np.floating] | Reply | None,
    room: NDArray[Any] | None,
    marks: Marks | None,
) -> None:
    """The map, what it shows in words, and its points as files.

    Args:
        colour: the column that colours the points.
        reply, placed: own sentences, and where they lie.
        room: points that the axes leave room for; None for the map's own.
        marks: what is selected in other views. A line of the map's own goes before it.
    """
    line = corners(one, layout)
    column = cloud.table[colour].iloc[layout.places] if colour in cloud.table else None
    own = placed if isinstance(placed, np.ndarray) else None
    figure = map_plot.figure(
        layout.coordinates,
        layout.axes,
        column,
        [cloud.texts[place] for place in layout.places],
        own=own,
        own_texts=[] if own is None or reply is None else own_sentences.labels(reply),
        range_of=room,
        equal=request.kind == "pca" and one.of == 1,
        compact=one.of > 1,
        marked=None if marks is None or line else marks.points,
    )
    count, kept = len(layout.places), len(cloud.points)
    many = f"{count:,} points"
    if count < one.entry["n"]:
        kept_of = "" if count == kept or kept == one.entry["n"] else f"{kept:,} kept of "
        many += f" drawn at random with seed {request.seed} from {kept_of}{one.entry['n']:,}"
    told = f"View {one.number}: layer" if one.of > 1 else "Layer"
    told += f" {one.layer}, {one.pooling}; {many}, d = {one.entry['d']}"
    if colour != UNCOLOURED and column is None:
        told += f"; there is no {colour} here"
    elif column is not None:
        told += meaning(colour, cloud.table)
    if marks is not None:
        told += f"; {int(marks.points.sum()):,} of them selected in {marks.where}"
    scatter_map(
        figure,
        key=component(one),
        name=cloud_file(one, request.kind),
        about=f"{one.source} · layer {one.layer} · {one.pooling} · {many}, d = {one.entry['d']}",
        words=f"{request.kind.upper()} map of {told}, coloured by {colour}",
        revision=layout.key,
        height=380 if one.of > 1 else 560,
        solid=request.dimensions == 3,
        selection=line,
        on_drawn=remember(one, layout.key),
    )
    others = ", and their rows stand out in the other views" if one.of > 1 and one.number == 1 else ""
    hint = (
        "" if request.dimensions == 3 else f" Draw around points to list them{others}; double-click to see all again."
    )
    st.caption(wording.plain(told + "." + hint))
    _files(one, cloud, layout, request)


def meaning(column: str, table: pd.DataFrame) -> str:
    """What the numbers of a column are that is not the data's own; nothing of another one."""
    if column == "length":
        return "; length: in tokens"
    if column != "error":
        return ""
    if pd.api.types.is_numeric_dtype(table["prediction"]):
        return "; error: how far the run's prediction lies off"
    return "; error: 1 less the probability that the run's head gives the true label"


def _files(one: Shown, cloud: Cloud, layout: Layout, request: MapRequest) -> None:
    """The points of the map as files, with where they lie and whether they were selected."""

    line = corners(one, layout)  # now: when the file is made, there is no page whose address could be read

    def table() -> pd.DataFrame:
        found = cloud.table.iloc[layout.places].reset_index(drop=True)
        for number in range(layout.coordinates.shape[1]):
            found[f"{request.kind}_{number + 1}"] = layout.coordinates[:, number]
        if line:
            found["selected"] = selection.inside(layout.coordinates, line)
        return found

    downloads.points(cloud_file(one, request.kind), table, key=one.prefix + "map_points")
