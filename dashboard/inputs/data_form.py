"""Fields for the source of a task's rows: generated, files on the server, an upload, or the hub; with a check before launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd
import streamlit as st

from dashboard.shared import actions, forms, reading, resources, wording
from dashboard.shared.stable import stable
from dashboard.streamlit_private import ExpanderContainer, uploaded_content
from isoviz import tasks
from isoviz.tasks.files import allowed
from isoviz.tasks.protocol import SPLITS, TRAIN, DataReport, OwnTask, Task

FEW: Final = 120
"""Fewer validation rows cannot show differences below 0.05, so they get no check mark."""
ON_SERVER, UPLOAD, HUB = "On the server", "Upload", "Hugging Face hub"


@dataclass(frozen=True)
class Source:
    """The source of one task's rows.

    Attributes:
        data: folder or file; None for generated rows and the hub.
        direction: direction of a translation task.
        own: completed columns of the user's data.
        ready: whether the rows are usable.
    """

    data: str | None = None
    direction: str | None = None
    own: OwnTask | None = None
    ready: bool = True


@stable
def data_field(task: Task, prefix: str = forms.PREFIX, *, check: bool = True, note: str = "") -> Source:
    """Draw the data section of a task of the catalogue.

    Args:
        prefix: prefix of the widget keys.
        check: read and check all rows, and show their summary.
        note: a sentence after the task's description.
    """
    description = f"{task.description} {note}".rstrip()
    if task.generated:
        st.caption(wording.plain(description))
        if check:
            _generated(task)
        return Source(direction=_direction(task, prefix))
    with st.container(border=True):
        st.markdown(f"**Data for {wording.plain(task.title)}**")
        columns = ", ".join(task.file_columns)
        st.caption(wording.plain(f"{description} Columns: {columns}. Licence: {task.licence}"))
        direction = _direction(task, prefix)
        data, ready = files_field(task.slug, prefix)
        return Source(data, direction, ready=ready and (not check or check_rows(task, data, direction)))


def _direction(task: Task, prefix: str) -> str | None:
    if not task.directions:
        return None
    return forms.choice("Direction", task.directions, f"{prefix}direction.{task.slug}", "Source and target language.")


def files_field(
    slug: str, prefix: str = forms.PREFIX, *, on_change: Callable[[], None] | None = None
) -> tuple[str | None, bool]:
    """Fields for the files of a task: their folder or file (None for the hub), and whether they are given.

    Args:
        on_change: called after an upload or another path.
    """
    own = slug == tasks.OWN
    hub = None if own else tasks.get(slug).hub
    source = forms.choice("Rows come from", [ON_SERVER, UPLOAD, *([HUB] if hub else [])], f"{prefix}from.{slug}")
    if hub and source == HUB:
        return None, _hub_requested(slug, hub, prefix)
    with st.container():  # keeps the field's position, see `dashboard.shared.stable`
        if source == UPLOAD:
            _upload(slug, prefix, on_change)
    path = st.text_input(
        "Data file or folder" if own else "Data folder",
        key=f"{prefix}data.{slug}",
        bind="query-params",
        placeholder="/path/to/reviews.csv" if own else "/path/to/folder",
        on_change=on_change,
        help="On the server.",
    )
    path = (path or "").strip()
    if not path:
        needed = "one file, or a folder with train and optional" if own else "a folder with train and"
        st.caption(f"Needed: {needed} validation ({', '.join(allowed())}).")
    return path or None, bool(path)


def _upload(slug: str, prefix: str, on_change: Callable[[], None] | None) -> None:
    own = slug == tasks.OWN
    key = f"{prefix}upload.{slug}"

    def keep() -> None:
        """Store a complete upload and put its folder into the form."""
        files = {split: file for split in SPLITS if (file := st.session_state.get(f"{key}.{split}")) is not None}
        if TRAIN not in files or (len(files) < len(SPLITS) and not own):
            st.session_state[f"{key}.problem"] = None
            return
        named = {split: (file.name, uploaded_content(file)) for split, file in files.items()}
        task = None if own else tasks.get(slug)
        wanted = reading.still_wanted(in_callback=True)
        if folder := actions.noted(f"{key}.problem", resources.service().keep_upload, named, task, wanted):
            st.session_state[f"{prefix}data.{slug}"] = str(folder)
            if on_change is not None:
                on_change()

    labels = (
        ("File (the training rows, or all)", "Validation file, if there is one")
        if own
        else ("Train file", "Validation file")
    )
    for column, split, label in zip(st.columns(2), SPLITS, labels, strict=True):
        column.file_uploader(
            label,
            type=reading.upload_types("table"),
            key=f"{key}.{split}",
            on_change=keep,
            disabled=actions.refusal() is not None,
        )
    if problem := st.session_state.get(f"{key}.problem"):
        forms.show_error(problem)
    else:
        both = "" if own else "Once both files are uploaded, they are checked. "
        st.caption(f"{both}Stored with the runs so that they can be repeated; the folder appears below.")


def _hub_requested(slug: str, hub: tuple[str, str], prefix: str) -> bool:
    """The button that reads a task's rows from the hub, and whether it was pressed in this session."""
    request_key = f"{prefix}hub_asked_{slug}"
    st.caption(wording.plain(f"{'/'.join(hub)}: read from this machine's hub cache, or downloaded."))
    if actions.button("Load and check", key=f"{prefix}hub_{slug}", icon=":material/cloud_download:"):
        st.session_state[request_key] = actions.perform(resources.service().require)
        reading.forget()
    return bool(st.session_state.get(request_key))


# ---------------------------------------------------------------------------------------------------- checking the rows


def check_rows(task: Task, data: str | None, direction: str | None = None) -> bool:
    """Show a summary of the rows, or what is wrong with them; returns whether they are usable."""
    with st.spinner("Reading the rows …", show_time=True):
        report, error = reading.remembered(data, reading.report, task, data, direction)
    if report is None:
        forms.show_error(error)
        return False
    _counts(task, report)
    with _expander(task) as panel:
        if panel.open:
            _preview(task, report)
    return True


def _generated(task: Task) -> None:
    with _expander(task) as panel:
        if panel.open:  # generating takes a moment
            with st.spinner("Generating the rows …", show_time=True):
                report, error = reading.remembered(None, reading.report, task, None, None)
            forms.show_error(error)
            if report is not None:
                _counts(task, report)
                _preview(task, report)


def _expander(task: Task) -> ExpanderContainer:
    label = f"Rows of {task.slug}" if task.own is None else "Rows as they will be used"
    return st.expander(label, icon=":material/table_rows:", key=f"rows_{task.slug}", on_change="rerun")


def _counts(task: Task, report: DataReport) -> None:
    """Rows per split with labels, and warnings."""
    for split, count in report.rows.items():
        labels = ", ".join(f"{name} {number:,}" for name, number in report.labels[split].items())
        sample = f" (in a sample of {report.looked_at[split]:,})" if labels and report.looked_at[split] < count else ""
        counted = f"{sample}: {wording.plain(labels)}" if labels else ""
        few = split != TRAIN and count < FEW
        icon = "warning" if few else "check_circle"
        st.markdown(f":material/{icon}: **{wording.plain(split)}** {count:,} rows{counted}")
    if part := _sampled(report):
        st.caption(f":material/info: Checked here: {part}. Every row is checked before a run starts.")
    for note in report.notes:
        st.caption(f":material/info: {wording.plain(note)}")


def _sampled(report: DataReport) -> str:
    """Long splits and their sample sizes; empty if all rows were read."""
    return "; ".join(
        f"of {wording.plain(split)}, the first rows and a random sample, {report.looked_at[split]:,} of {count:,}"
        for split, count in report.rows.items()
        if report.looked_at[split] < count
    )


def _preview(task: Task, report: DataReport) -> None:
    """First rows per split."""
    for split, rows in report.preview.items():
        st.caption(f"First rows of {wording.plain(split)}")
        st.dataframe(_named(task, rows), hide_index=True, alt=f"First rows of the {split} split")


def _named(task: Task, rows: list[dict[str, object]]) -> pd.DataFrame:
    """Rows with class names."""
    frame = pd.DataFrame(rows)
    if task.label_names and "label" in frame:
        frame["label"] = [task.label_names[int(code)] for code in frame["label"]]
    return frame
