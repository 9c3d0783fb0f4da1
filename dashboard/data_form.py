"""Where the rows of a task come from: a folder on the server, an upload, or the hub; checked with a preview before launch."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from dashboard import forms, resources, uploads, wording
from isoviz import tasks
from isoviz.errors import DataError, InputError
from isoviz.tasks.files import SPLITS, SUFFIXES
from isoviz.tasks.protocol import DataReport, Task

FROM_FOLDER, FROM_UPLOAD, FROM_HUB = "Folder on the server", "Upload", "Hugging Face hub"

Stamp = tuple[tuple[str, int, int], ...]


def data_field(slug: str) -> tuple[str | None, bool]:
    """Draw the data section of a task that reads files: (folder or None for the hub, whether its rows can serve)."""
    task = tasks.get(slug)
    with st.container(border=True):
        st.markdown(f"**Data for {task.title}**")
        columns = ", ".join(task.file_columns)
        st.caption(wording.plain(f"{task.description} Columns: {columns}. Licence: {task.licence}"))
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
            return None, _hub(task)
        if source == FROM_UPLOAD:
            _upload(task)
        folder = _folder(task)
        return folder, folder is not None and _report(task, folder)


def _folder(task: Task) -> str | None:
    names = " or ".join(f"train{suffix}" for suffix in SUFFIXES)
    text = st.text_input(
        "Data folder",
        key=forms.key(f"data.{task.slug}"),
        bind="query-params",
        placeholder="/path/to/folder",
        help=wording.plain(f"A folder that the server can read, with {names}, and validation likewise."),
    )
    folder = (text or "").strip()
    if not folder:
        st.caption(f"Needed: a folder with train and validation ({', '.join(SUFFIXES)}).")
    return folder or None


def _upload(task: Task) -> None:
    endings = [suffix.removeprefix(".") for suffix in SUFFIXES]
    for column, split in zip(st.columns(2), SPLITS, strict=True):
        column.file_uploader(
            f"{split.capitalize()} file",
            type=endings,
            key=f"upload_{task.slug}_{split}",
            on_change=_take_upload,
            args=(task.slug,),
        )
    if problem := st.session_state.get(_problem_key(task.slug)):
        forms.error_beside(problem)
    else:
        st.caption("When both files are there they are checked and kept beside the runs; their folder appears below.")


def _take_upload(slug: str) -> None:
    """Keep a complete upload and put its folder into the form; a bad one is told below the upload, and changes nothing else."""
    task = tasks.get(slug)
    found = {split: st.session_state.get(f"upload_{slug}_{split}") for split in SPLITS}
    files = {split: (file.name, file.getbuffer()) for split, file in found.items() if file is not None}
    st.session_state[_problem_key(slug)] = None
    if len(files) < len(SPLITS):
        return
    try:
        folder = uploads.save(resources.store().folder, task, files)
    except DataError as error:
        st.session_state[_problem_key(slug)] = forms.sentence(error)
        return
    st.session_state[forms.key(f"data.{slug}")] = str(folder)


def _problem_key(slug: str) -> str:
    return f"upload_problem_{slug}"


def _hub(task: Task) -> bool:
    name = "/".join(task.hub or ())
    asked = f"hub_asked_{task.slug}"
    st.caption(wording.plain(f"{name}: from this machine's hub cache if it is there, else it is downloaded."))
    if st.button("Get and check it", key=f"hub_{task.slug}", icon=":material/cloud_download:"):
        st.session_state[asked] = True
    return bool(st.session_state.get(asked)) and _report(task, None)


def _report(task: Task, folder: str | None) -> bool:
    with st.spinner("Reading the rows …", show_time=True):
        report, problem = _checked(task.slug, folder, stamp(folder) if folder else ())
    if report is None:
        forms.error_beside(problem)
        return False
    _preview(report)
    return True


def _preview(report: DataReport) -> None:
    for split, count in report.rows.items():
        labels = ", ".join(f"{name} {number}" for name, number in report.labels[split].items())
        st.markdown(f":material/check_circle: **{split}** {count:,} rows: {wording.plain(labels)}")
    for note in report.notes:
        st.caption(f":material/info: {wording.plain(note)}")
    with st.expander("First rows"):
        for split, rows in report.preview.items():
            st.caption(split)
            st.dataframe(rows, hide_index=True, alt=f"First rows of the {split} split")


@st.cache_data(show_spinner=False, max_entries=32, ttl=900)
def _checked(slug: str, folder: str | None, files: Stamp) -> tuple[DataReport | None, str | None]:
    """The check's answer, remembered until a file changes (`files`)."""
    del files
    try:
        return tasks.check_data(tasks.get(slug), folder), None
    except InputError as error:
        return None, forms.sentence(error)


def stamp(folder: str) -> Stamp:
    """Name, size and time of the folder's data files: equal stamps, equal content for all purposes here."""
    try:
        found = sorted(path for path in Path(folder).expanduser().iterdir() if path.suffix in SUFFIXES)
        stats = [(path.name, path.stat()) for path in found]
    except OSError:
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)
