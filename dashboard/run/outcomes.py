"""A run's predictions: confusion matrix, predicted against true numbers, texts side by side, errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboard.components import figure
from dashboard.shared import downloads, forms, reading, resources, theme, wording
from dashboard.shared.explanations import Explanation
from isoviz import allowed_paths, tasks
from isoviz.errors import shortened
from isoviz.runs.rows import RunRow
from isoviz.tasks import outcomes
from isoviz.tasks.metrics import confusion_counts
from isoviz.tasks.protocol import Task
from isoviz.training import predictions
from isoviz.training.predictions import Predictions

CONFUSION = Explanation(
    title="Confusion matrix",
    reading=(
        "Rows are true classes, columns are predicted classes; each cell gives the number of rows and their share "
        "of the true class. Correct predictions lie on the diagonal; a dark column off the diagonal is a class "
        "that the model predicts too often."
    ),
    formula=r"C_{ij} = \#\{r : y_r = i,\ \hat y_r = j\}, \qquad \text{share}_{ij} = C_{ij} / \textstyle\sum_k C_{ik}",
    paper="Stehman 1997, Selecting and interpreting measures of thematic classification accuracy.",
)

PREDICTED = Explanation(
    title="Predicted against true",
    reading=(
        "One mark per validation row; predictions on the dotted line are exact. A flat cloud means that the model "
        "predicts values near the middle; a cloud along another line means good ranking but wrong scale."
    ),
    formula=r"r = \frac{\sum_i (y_i - \bar y)(\hat y_i - \bar{\hat y})}"
    r"{\sqrt{\sum_i (y_i - \bar y)^2 \sum_i (\hat y_i - \bar{\hat y})^2}}",
    paper="Wang et al. 2019 (GLUE) for the correlation as metric.",
)

MAX_NAMED = 12
"""Most classes of a confusion matrix with counts in its cells."""
SHOWN = 500
"""Most rows of the table on screen."""


def draw(run: RunRow, fingerprint: Callable[[], str | None]) -> None:
    """The section of the page; empty for a run without saved predictions.

    Args:
        fingerprint: returns the fingerprint of the run's rows, to read them again.
    """
    folder = resources.library().folder_of(run.id)
    with allowed_paths.unrestricted():  # no visitor names this folder
        predicted, error = reading.remembered(str(folder / predictions.FILE), predictions.load, folder)
    if predicted is None and error is None:
        return
    st.header("Predictions", anchor=False)
    task = None
    if predicted is not None:  # its task may be unknown to this version
        task, error = reading.answer(tasks.get, run.config.task, run.config.own)
    forms.show_error(error)
    if predicted is None or task is None:
        return
    count = len(predicted.table)
    limit_text = f", the first of {wording.number(predicted.rows)}" if count < predicted.rows else ""
    epoch_text = "before training" if predicted.epoch == 0 else f"after epoch {predicted.epoch}"
    st.caption(f"Of the validation rows {epoch_text}: n = {wording.number(count)}{limit_text}.")
    if task.label_names:
        _confusion(run, task, predicted)
    elif task.kind == "regression":
        _numbers(run, predicted)
    with st.expander(
        "Row by row, worst first", icon=":material/table_rows:", key="run_rows", on_change="rerun"
    ) as rows:
        if rows.open:
            _rows(run, task, predicted, fingerprint())


# ---------------------------------------------------------------------------------------------------- figures per kind


def _confusion(run: RunRow, task: Task, predicted: Predictions) -> None:
    names = task.label_names
    labels, predictions = (predicted.table[name].to_numpy() for name in ("label", "prediction"))
    counts = confusion_counts(labels, predictions, len(names))
    table = pd.DataFrame(counts, columns=[f"predicted {name}" for name in names])
    table.insert(0, "true", names)
    # wide cells are hard to compare
    with st.container(width=170 + 130 * len(names) if len(names) <= 6 else "stretch"):
        figure.draw(
            confusion_figure(names, counts, st.context.theme.type == "dark"),
            key="run_confusion",
            words=f"Confusion matrix of {len(names)} classes, n = {len(labels)}",
            name=f"isoviz-{run.id}-confusion",
            explanation=CONFUSION,
            table=table,
        )


def confusion_figure(classes: Sequence[str], counts: np.ndarray, dark: bool) -> go.Figure:
    """True classes as rows, predicted ones as columns; colour and second line: share of the row.

    Args:
        dark: dark mode, for the text in the cells.
    """
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    names, places = [escape(shortened(name, 24)) for name in classes], list(range(len(classes)))
    heat = go.Heatmap(
        x=places,
        y=places,
        z=shares.tolist(),
        zmin=0,
        zmax=1,
        colorscale=[[0, "rgba(73,104,246,0.03)"], [1, "rgba(73,104,246,0.6)"]],
        showscale=False,
        text=[
            [f"{n}<br>{share:.0%}" for n, share in zip(*row, strict=True)] for row in zip(counts, shares, strict=True)
        ],
        texttemplate="%{text}" if len(names) <= MAX_NAMED else None,
        textfont={"color": "#f3f4f6" if dark else "#1b1f2a"},
        customdata=[[[row, column] for column in names] for row in names],
        hovertemplate="true %{customdata[0]}<br>predicted %{customdata[1]}<br>%{text}<extra></extra>",
        xgap=2,
        ygap=2,
    )
    ticks = {"tickvals": places, "ticktext": names, "ticks": "", "showgrid": False, "zeroline": False}
    axes = {"xaxis": ticks, "yaxis": {**ticks, "autorange": "reversed"}, "margin": {"t": 12}}
    return theme.titled(go.Figure(heat), "predicted", "true", height=min(640, 130 + max(2, len(names)) * 56), **axes)


def _numbers(run: RunRow, predicted: Predictions) -> None:
    table = predicted.table[["row", "label", "prediction"]]
    ends = [float(table["label"].min()), float(table["label"].max())]
    plot = go.Figure(
        go.Scattergl(
            x=table["label"].tolist(),
            y=table["prediction"].tolist(),
            mode="markers",
            showlegend=False,
            marker={"size": 7, "color": theme.PALETTE[0], "opacity": 0.5},
            hovertemplate="true %{x:.4g}<br>predicted %{y:.4g}<extra></extra>",
        )
    )
    line = {"color": theme.NEUTRAL, "dash": "dot"}
    plot.add_scatter(x=ends, y=ends, mode="lines", name="predicted = true", line=line, hoverinfo="skip")
    figure.draw(
        theme.titled(plot, "true", "predicted", height=380),
        key="run_predicted",
        words=f"Predicted against true numbers, n = {len(table)}",
        name=f"isoviz-{run.id}-predicted",
        explanation=PREDICTED,
        table=table,
    )


def _columns(table: pd.DataFrame) -> dict[str, Any]:
    """Numbers with three decimals, and a narrow column of row numbers."""
    numbers = {
        str(name): st.column_config.NumberColumn(format="%.3f")
        for name in table.columns
        if pd.api.types.is_float_dtype(table[name])
    }
    return {**numbers, "row": st.column_config.NumberColumn(width=60)}


# ---------------------------------------------------------------------------------------------------- row by row


def _rows(run: RunRow, task: Task, predicted: Predictions, fingerprint: str | None) -> None:
    with st.spinner("Reading the rows again …", show_time=True):
        frame, problem = _texts_again(run, task, fingerprint)
    if frame is not None and len(frame) < len(predicted.table):
        frame, problem = None, "The data now has fewer rows than this run predicted."
    if problem:
        st.warning(wording.plain(f"Texts unavailable: {problem}"), icon=":material/database_off:")
    table = _worst_first(task, predicted, frame)
    if task.kind == "classification" and st.toggle("Errors only", value=True, key="run_wrong_only"):
        table = table[~table["correct"]].drop(columns="correct")
    total = len(table)
    if not total:
        st.caption("Every prediction is correct.")
        return
    st.dataframe(
        table.head(SHOWN),
        hide_index=True,
        height="auto",
        column_config=_columns(table),
        alt="Predictions row by row, the worst first",
    )
    first = f"The first {SHOWN} of {wording.number(total)}; download the file for all."
    st.caption(first if total > SHOWN else f"{wording.number(total)} rows.")
    downloads.buttons(f"isoviz-{run.id}-predictions", table, with_parquet=False)


def _worst_first(task: Task, predicted: Predictions, frame: pd.DataFrame | None) -> pd.DataFrame:
    """`outcomes.errors` of the saved predictions; without the rows, the reference is the only text column."""
    saved = predicted.table
    reference_column = task.reference
    if frame is None:
        rows = pd.DataFrame(dict.fromkeys(task.columns, ""), index=saved.index)
        rows[reference_column] = saved["label"]
    else:
        rows = frame.head(len(saved))
    confidence = saved["confidence"].to_numpy() if "confidence" in saved else None
    answers = saved["prediction"].to_numpy() if task.rules.per_row else saved["prediction"].tolist()
    table = outcomes.errors(task, rows, answers, confidence=confidence)
    unknown = [name for name in task.columns if name != reference_column] if frame is None else []
    return table.drop(columns=unknown)


def _texts_again(run: RunRow, task: Task, fingerprint: str | None) -> tuple[pd.DataFrame | None, str | None]:
    """The run's validation rows, or the reason why they are not the rows it read."""
    config = run.config
    limits = (config.data, config.direction, config.max_train, config.max_eval)
    answer, error = reading.remembered(config.data, _loaded, task, fingerprint, *limits)
    if answer is None:
        return None, forms.sentence(error) if error else None
    frame, now = answer
    changed = f"the data has changed since this run (fingerprint {now}, the run's was {fingerprint})."
    return frame, changed if frame is None else None


def _loaded(task: Task, fingerprint: str | None, *limits: Any) -> tuple[pd.DataFrame | None, str]:
    """Validation rows and the fingerprint of all rows read; no rows if that differs from `fingerprint`."""
    now = reading.check(task, *limits)
    if fingerprint is not None and now != fingerprint:
        return None, now
    rows = tasks.load(task, *limits)
    return rows.validation, rows.fingerprint
