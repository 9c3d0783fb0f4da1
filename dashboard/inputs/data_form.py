"""Fields for the source of a task's rows: generated, a folder on the server, an upload, or the hub; with a check before launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.inputs import rows_view
from dashboard.shared import actions, forms, reading, resources, wording
from dashboard.streamlit_private import ExpanderContainer
from isoviz import boundary, tasks
from isoviz.access.uploads import Files
from isoviz.errors import AccessError, InputError
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.protocol import DataReport, OwnTask, Problems, Task

FROM_FOLDER, FROM_UPLOAD, FROM_HUB = "Folder on the server", "Upload", "Hugging Face hub"

Stamp = tuple[tuple[str, int, int], ...]


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


def data_field(slug: str) -> Source:
    """Draw the data section of a task of the catalogue."""
    task = tasks.get(slug)
    if task.generated:
        st.caption(wording.plain(task.description))
        _generated(task)
        return Source(direction=_direction(task))
    with st.container(border=True):
        st.markdown(f"**Data for {task.title}**")
        columns = ", ".join(task.file_columns)
        st.caption(wording.plain(f"{task.description} Columns: {columns}. Licence: {task.licence}"))
        direction = _direction(task)
        choices = [FROM_FOLDER, FROM_UPLOAD, *([FROM_HUB] if task.hub else [])]
        source = st.segmented_control(
            "Rows come from",
            choices,
            default=FROM_FOLDER,
            required=True,
            key=forms.key(f"from.{slug}"),
            bind="query-params",
        )
        if source == FROM_HUB:
            return Source(None, direction, ready=hub_requested(task) and check_rows(task, None, direction))
        with st.container():  # keeps the field's position, see `dashboard.shared.steady`
            if source == FROM_UPLOAD:
                _upload(task)
        folder = folder_field(forms.key(f"data.{task.slug}"))
        return Source(folder, direction, ready=folder is not None and check_rows(task, folder, direction))


def _direction(task: Task) -> str | None:
    if not task.directions:
        return None
    selected: str = st.selectbox(
        "Direction",
        task.directions,
        key=forms.key(f"direction.{task.slug}"),
        bind="query-params",
        help="Source and target language.",
    )
    return selected


def folder_field(key: str, more: str = "") -> str | None:
    """Field for the folder of a task's files; None with a hint if empty.

    Args:
        key: key of the field.
        more: text after the hint.
    """
    names = " or ".join(f"train{suffix}" for suffix in SUFFIXES)
    text = st.text_input(
        "Data folder",
        key=key,
        bind="query-params",
        placeholder="/path/to/folder",
        help=wording.plain(f"A folder that the server can read, with {names}, and the same for validation."),
    )
    folder = (text or "").strip()
    if not folder:
        st.caption(f"Needed: a folder with train and validation ({', '.join(SUFFIXES)}).{more}")
    return folder or None


def _upload(task: Task) -> None:
    for column, split in zip(st.columns(2), SPLITS, strict=True):
        column.file_uploader(
            f"{split.capitalize()} file",
            type=endings(),
            key=f"upload_{task.slug}_{split}",
            on_change=_store_upload,
            args=(task.slug,),
            disabled=actions.refusal() is not None,
        )
    if problem := st.session_state.get(_problem_key(task.slug)):
        forms.show_error(problem)
    else:
        st.caption(
            "Once both files are uploaded, they are checked and stored with the runs; their folder appears below."
        )


def endings() -> Sequence[str]:
    """Accepted file extensions of an upload."""
    return [suffix.removeprefix(".") for suffix in SUFFIXES]


def _store_upload(slug: str) -> None:
    """Store a complete upload and put its folder into the form. Shows the error of an invalid one below the field."""
    files = uploaded(slug)
    st.session_state[_problem_key(slug)] = None
    if len(files) < len(SPLITS):
        return
    try:
        folder = resources.service().keep_upload(files, tasks.get(slug), reading.still_wanted(in_callback=True))
    except (AccessError, InputError) as error:
        st.session_state[_problem_key(slug)] = forms.advised(error)
        return
    st.session_state[forms.key(f"data.{slug}")] = str(folder)


def uploaded(slug: str) -> Files:
    """The files in a task's upload fields."""
    files = {split: st.session_state.get(f"upload_{slug}_{split}") for split in SPLITS}
    return {split: (file.name, file.getbuffer()) for split, file in files.items() if file is not None}


def _problem_key(slug: str) -> str:
    return f"upload_problem_{slug}"


def hub_requested(task: Task, prefix: str = "") -> bool:
    """The button that reads a task's rows from the hub, and whether it was pressed in this session.

    Args:
        prefix: prefix of the widget keys.
    """
    name = "/".join(task.hub or ())
    request_key = f"{prefix}hub_asked_{task.slug}"
    st.caption(wording.plain(f"{name}: read from this machine's hub cache, or downloaded."))
    if actions.button("Load and check", key=f"{prefix}hub_{task.slug}", icon=":material/cloud_download:"):
        st.session_state[request_key] = actions.perform(resources.service().require)
    return bool(st.session_state.get(request_key))


# ---------------------------------------------------------------------------------------------------- checking the rows


def check_rows(task: Task, data: str | None, direction: str | None = None) -> bool:
    """Show a summary of the rows, or all their errors; returns whether they are usable."""
    files = stamp(data) if data else ()
    with st.spinner("Reading the rows …", show_time=True):
        report, problem = _checked(task.slug, data, direction, files, _columns(task))
        faults = None
        if report is None and data is not None:
            faults = _faults(task.slug, data, direction, files, _columns(task))
    if report is None:
        if faults is not None and faults.count:
            rows_view.problems(faults)
        else:
            forms.show_error(problem)
        return False
    rows_view.counts(report)
    with _expander(task) as panel:
        if panel.open:
            rows_view.draw(task, report)
    return True


def _generated(task: Task) -> None:
    with _expander(task) as panel:
        if panel.open:  # generating takes a moment
            with st.spinner("Generating the rows …", show_time=True):
                report, problem = _checked(task.slug, None, None, (), None)
            forms.show_error(problem)
            if report is not None:
                rows_view.counts(report)
                rows_view.draw(task, report)


def _expander(task: Task) -> ExpanderContainer:
    label = f"Rows of {task.slug}" if task.own is None else "Rows as they will be used"
    return st.expander(label, icon=":material/table_rows:", key=f"rows_{task.slug}", on_change="rerun")


def _columns(task: Task) -> str | None:
    return task.own.model_dump_json() if task.own is not None else None


def _task(slug: str, columns: str | None) -> Task:
    return tasks.get(slug, OwnTask.model_validate_json(columns) if columns else None)


@st.cache_data(show_spinner=False, max_entries=32, ttl=900)
def _checked(
    slug: str, data: str | None, direction: str | None, files: Stamp, columns: str | None
) -> tuple[DataReport | None, str | None]:
    """The check's result, cached until a file changes (`files`)."""
    del files
    try:
        return reading.report(_task(slug, columns), data, direction), None
    except InputError as error:
        return None, forms.advised(error)


@st.cache_data(show_spinner=False, max_entries=32, ttl=900)
def _faults(slug: str, data: str, direction: str | None, files: Stamp, columns: str | None) -> Problems | None:
    """The invalid rows; None if the error is not in a row."""
    del files
    try:
        return reading.problems(_task(slug, columns), data, direction)
    except InputError:
        return None


def stamp(data: str) -> Stamp:
    """Name, size and time of a folder's data files, or of one file. Equal stamps mean unchanged content."""
    try:
        path = boundary.path(data, "data")
        files = [path] if path.is_file() else sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
        stats = [(file.name, file.stat()) for file in files]
    except (OSError, InputError):
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
