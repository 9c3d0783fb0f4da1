"""Reading a visitor's files in a process with limits: the server gets only a preview, a summary or an error.

The process ends with the page that waits for it: when the tab is closed, or when the visitor has made another request.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

import streamlit as st

from dashboard.streamlit_private import StopException, session_id, session_is_open
from isoviz import input_validation, limits, tasks
from isoviz.errors import InputError
from isoviz.jobs import guarded
from isoviz.jobs.worker import load
from isoviz.models.sources import ModelSource
from isoviz.runs.planning import DataChecks
from isoviz.tables import catalogue
from isoviz.tables.protocol import Holds
from isoviz.tasks.files import is_table
from isoviz.tasks.own import Guess, Preview
from isoviz.tasks.protocol import DataReport, HeadKind, OwnTask, Task

_ROOM: Final = "isoviz.tasks.reading:"
DOWNLOAD_SECONDS: Final = 3600.0
"""Time limit for rows from the hub, which may have to be downloaded."""


Stamp = tuple[tuple[str, int, int], ...]
P = ParamSpec("P")
T = TypeVar("T")


def stamp(data: str | None) -> Stamp:
    """Name, size and time of a folder's data files, or of one file. Equal stamps mean unchanged content."""
    try:
        path = input_validation.path(data, "data") if data else None
        files = [] if path is None else [path] if path.is_file() else sorted(path.iterdir())
        stats = [(file.name, file.stat()) for file in files if is_table(file)]
    except (OSError, InputError):
        return ()
    return tuple((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)


def upload_types(*holds: Holds) -> list[str]:
    """The endings that a field for uploads takes."""
    return [ending.removeprefix(".") for ending in (*catalogue.endings(*holds), catalogue.GZIP)]


def answer(read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T | None, InputError | None]:
    """What a reader returns, or its error."""
    try:
        return read(*args, **kwargs), None
    except InputError as error:
        return None, error


def remembered(data: str | None, read: Callable[..., T], *args: Any) -> tuple[T | None, InputError | None]:
    """`answer`, cached until a file of `data` changes."""
    result: tuple[T | None, InputError | None] = _remembered(
        f"{read.__module__}.{read.__qualname__}", stamp(data), args, read
    )
    return result


@st.cache_data(show_spinner=False, max_entries=128, ttl=900, hash_funcs={Task: repr, OwnTask: repr})
def _remembered(name: str, files: Stamp, args: tuple[Any, ...], _read: Callable[..., Any]) -> Any:
    del name, files
    return answer(_read, *args)


def forget() -> None:
    """Drop every remembered answer. The hub's errors need it: they depend on no file, so nothing else would drop them."""
    _remembered.clear()


def preview(data: str) -> Preview:
    """See `isoviz.tasks.reading.preview`."""
    return _ask(_ROOM + "preview", Preview, data=data)


def guess(data: str, columns: OwnTask) -> Guess:
    """The kind of a column's labels."""
    return _ask("isoviz.tasks.own:guess", Guess, data=data, columns=columns)


def report(task: Task, data: str | None, direction: str | None) -> DataReport:
    """Summary of the rows."""
    return _ask("isoviz.tasks:check_data", DataReport, task=task, data=data, direction=direction)


def check(
    task: Task,
    data: str | None,
    direction: str | None = None,
    max_train: int | None = None,
    max_eval: int | None = None,
) -> str:
    """The rows' fingerprint. Raises their error."""
    read = {"direction": direction, "max_train": max_train, "max_eval": max_eval}
    return _ask(_ROOM + "check", str, task=task, data=data, **read)


def counted(slug: str, data: str | None) -> tuple[str, dict[str, int]]:
    """Fingerprint, and rows of train and validation."""
    return _ask(_ROOM + "counted", tuple[str, dict[str, int]], task=tasks.get(slug), data=data)


def mismatch(source: ModelSource, kinds: Sequence[HeadKind]) -> str:
    """How a model's weights differ from its configuration, as text; empty if they fit. Raises if the model cannot be loaded."""
    arguments = {"source": source, "kinds": list(kinds)}
    imports = ("torch", "transformers", "isoviz.models.adapter")
    pulse = still_wanted()
    return guarded.call(
        "isoviz.models.adapter:mismatch_words", arguments, str, field="model", imports=imports, pulse=pulse
    )


def _completed(data: str | None, columns: OwnTask) -> OwnTask:
    return _ask("isoviz.tasks.own:completed", OwnTask, data=data, columns=columns)


CHECKS: Final = DataChecks(complete=_completed, read=check)
"""For `isoviz.runs.planning.expand`."""


def _ask(function: str, returns: Any, **arguments: Any) -> Any:
    task: Task | None = arguments.get("task")
    if task is not None and task.generated:  # generated rows are safe: no process needed
        return load(function)(**arguments)
    allowed = limits.from_environment()
    if task is not None and arguments["data"] is None:
        allowed = dataclasses.replace(allowed, seconds=max(allowed.seconds, DOWNLOAD_SECONDS))
    return guarded.call(function, arguments, returns, allowed=allowed, pulse=still_wanted())


def still_wanted(in_callback: bool = False) -> Callable[[], None]:
    """A function that raises when the tab is closed or, outside callbacks (which run once), when the visitor has made another
    request."""
    session = session_id()
    if session is None:
        return lambda: None

    def pulse() -> None:
        if not in_callback:
            _ = "reading" in st.session_state  # Streamlit can interrupt the script here
        if not session_is_open(session):
            raise StopException

    return pulse
