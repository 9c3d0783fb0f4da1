"""Files that a visitor names or uploads, read in a process with limits: the server holds a preview, a summary, or why there is none.

The process ends with the page that waits for it: when its tab is closed, or when the visitor has already asked for something else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Final

import streamlit as st
from streamlit.runtime import exists, get_instance
from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx

from isoviz import limits, tasks
from isoviz.jobs import guarded
from isoviz.models.sources import ModelSource
from isoviz.runs.planning import DataChecks
from isoviz.tasks import reading as here
from isoviz.tasks.own import Guess, Preview
from isoviz.tasks.protocol import DataReport, HeadKind, OwnTask, Problems, Task

_ROOM: Final = "isoviz.tasks.reading:"
DOWNLOAD_SECONDS: Final = 3600.0
"""For rows of the hub, which may have to be downloaded first."""


def preview(data: str) -> Preview:
    """See `isoviz.tasks.reading.preview`; so for the others."""
    return _ask("preview", Preview, data=data)


def guess(data: str, columns: OwnTask) -> Guess:
    """What a column's labels are."""
    return _ask("guess", Guess, data=data, columns=columns)


def report(task: Task, data: str | None, direction: str | None) -> DataReport:
    """What a person should know of the rows."""
    return _ask("report", DataReport, slug=task.slug, columns=task.own, data=data, direction=direction)


def problems(task: Task, data: str | None, direction: str | None) -> Problems:
    """The single rows at fault."""
    return _ask("problems", Problems, slug=task.slug, columns=task.own, data=data, direction=direction)


def check(
    task: Task,
    data: str | None,
    direction: str | None = None,
    max_train: int | None = None,
    max_eval: int | None = None,
) -> str:
    """Raise what is wrong with the rows; else their fingerprint."""
    read = {"direction": direction, "max_train": max_train, "max_eval": max_eval}
    return _ask("check", str, slug=task.slug, columns=task.own, data=data, **read)


def counted(slug: str, data: str | None) -> tuple[str, dict[str, int]]:
    """Fingerprint, and rows of train and validation."""
    return _ask("counted", tuple[str, dict[str, int]], slug=slug, data=data)


def mismatch(source: ModelSource, kinds: Sequence[HeadKind]) -> str:
    """How a model's weights differ from its configuration, in words; empty where they do not. Raises for what cannot be loaded."""
    arguments = {"source": source, "kinds": list(kinds)}
    imports = ("torch", "transformers", "isoviz.models.adapter")
    pulse = still_wanted()
    return guarded.call("isoviz.models.fit:words", arguments, str, field="model", imports=imports, pulse=pulse)


def _completed(data: str | None, columns: OwnTask) -> OwnTask:
    return _ask("completed", OwnTask, data=data, columns=columns)


def _targets_problem(source: ModelSource, kind: HeadKind, targets: tuple[str, ...]) -> str:
    arguments = {"source": source, "kind": kind, "targets": targets}
    imports = ("torch", "transformers", "peft", "isoviz.models.adapter")
    function = "isoviz.models.low_rank:targets_problem"
    return guarded.call(function, arguments, str, field="lora_targets", imports=imports, pulse=still_wanted())


CHECKS: Final = DataChecks(complete=_completed, read=check, targets_problem=_targets_problem)
"""For `isoviz.runs.planning.expand`."""


def _ask(name: str, returns: Any, **arguments: Any) -> Any:
    known = tasks.catalogue().get(arguments.get("slug", ""))
    if known is not None and known.generated:  # rows of ours: a process would only make people wait
        return getattr(here, name)(**arguments)
    allowed = limits.from_environment()
    if "slug" in arguments and arguments["data"] is None:
        allowed = dataclasses.replace(allowed, seconds=max(allowed.seconds, DOWNLOAD_SECONDS))
    return guarded.call(_ROOM + name, arguments, returns, allowed=allowed, pulse=still_wanted())


def still_wanted(in_callback: bool = False) -> Callable[[], None]:
    """A function that raises once the tab is closed or, outside of callbacks (which run once), the visitor has asked for something
    else."""
    context = get_script_run_ctx()
    if context is None:
        return lambda: None
    session = context.session_id

    def pulse() -> None:
        if not in_callback:
            _ = "reading" in st.session_state  # a place at which Streamlit ends a script
        if exists() and not get_instance().is_active_session(session):
            raise StopException

    return pulse
