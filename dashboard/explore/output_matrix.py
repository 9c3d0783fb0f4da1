"""The output matrix of each model on the page: I1 and I2 as defined and as published, and the lengths of its rows beside them."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import downloads, explanations, wording
from dashboard.components.figure import draw
from dashboard.explore import plots
from dashboard.explore.shown import Shown, file_name
from isoviz import tasks

_CONVENTIONS = {"definition": "as defined", "published": "as published"}
_COLUMNS = ("Convention", "I₁", "I₂", "I₁, unit scale", "I₂, unit scale")


def section(shown: list[Shown]) -> None:
    """One block per model: views of the same model share it."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.subheader("Output matrix", anchor=False, width="content")
        explanations.show("output_matrix")
    models: dict[str, list[Shown]] = {}
    for one in shown:
        models.setdefault(str(one.view.facts["model_fingerprint"]), []).append(one)
    for views, column in zip(models.values(), st.columns(len(models), gap="medium"), strict=True):
        with column:
            _block(views[0], [one.number for one in views], alone=len(models) == 1)


def _block(one: Shown, numbers: list[int], *, alone: bool) -> None:
    found: dict[str, Any] = one.view.facts["output"]
    if one.of > 1:
        views = f"View{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
        st.markdown(f"**{views}**: {wording.plain(_model(one))}")
    if "reason" in found:
        reason = found["reason"]
        st.caption(wording.plain(f"{reason[0].upper()}{reason[1:]}."))
        return
    left, right = st.columns([5, 6], gap="large") if alone else (st.container(), st.container())
    with left:
        what = f"{found['what']}: N = {wording.number(found['rows'])} rows of d = {found['d']}"
        st.markdown(wording.plain(f"{what[0].upper()}{what[1:]} numbers."))
        shown = table(found)
        st.markdown(_as_markdown(shown))
        norms = found["norms"]
        told = (
            f"Row length ‖w‖: mean {wording.number(norms['mean'])}, from {wording.number(norms['min'])} "
            f"to {wording.number(norms['max'])}. Unit scale: all rows divided by their root mean square length."
        )
        if found["rows"] < found["d"]:
            told += (
                " With fewer rows than dimensions, the published reading also depends on the solver of eigenvectors."
            )
        st.caption(wording.plain(told))
        name = f"{file_name(one)}-output-matrix" + (f"-view{one.number}" if one.number > 1 else "")
        downloads.buttons(name, shown, parquet_too=True)
    with right:
        names = _names(one, found)
        figure = plots.row_lengths(found, names)
        if one.of > 1:
            plots.compact(figure)
        words = f"Lengths of the {found['rows']} rows of the output matrix, mean {wording.number(norms['mean'])}"
        draw(figure, key=one.prefix + "output", words=words, name=name, about=f"{_model(one)} · {what}")


def _as_markdown(shown: pd.DataFrame) -> str:
    """Two lines: a table that sorts would cost a new tab more than all figures."""
    lines = [
        [wording.plain(cell) if isinstance(cell, str) else wording.number(cell) for cell in line]
        for line in shown.itertuples(index=False)
    ]
    head = [list(shown.columns), ["---", *["---:"] * (len(shown.columns) - 1)]]
    return "\n".join("| " + " | ".join(line) + " |" for line in [*head, *lines])


def table(found: dict[str, Any]) -> pd.DataFrame:
    """One line per convention: I1 and I2 as the matrix is, and at unit scale; missing where undefined."""
    pairs = {(pair["convention"], pair["scale_free"]): (pair["i1"], pair["i2"]) for pair in found["pairs"]}
    lines = [(name, *pairs[slug, False], *pairs[slug, True]) for slug, name in _CONVENTIONS.items()]
    return pd.DataFrame(lines, columns=list(_COLUMNS)).astype(object).where(lambda frame: frame.notna(), None)


def _model(one: Shown) -> str:
    assert one.filled.request is not None
    return one.filled.request.model


def _names(one: Shown, found: dict[str, Any]) -> list[str]:
    """What the rows stand for, where they are few: the classes of the task, if it has so many."""
    known = tasks.get(str(one.view.facts["request"]["task"])).label_names
    fits = found["what"].startswith("the output layer") and len(known) == found["rows"]
    return list(known) if fits else [str(number) for number in range(len(found["each"] or ()))]
