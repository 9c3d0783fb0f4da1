"""Buttons that start or change something on the server, and messages when that is refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, ParamSpec, TypeVar

import streamlit as st

from dashboard.shared import menu, resources, wording
from dashboard.streamlit_private import session_id
from isoviz.config import RunConfig
from isoviz.errors import AccessError, IsoVizError
from isoviz.runs.naming import experiment_name
from isoviz.runs.rows import RunRow
from isoviz.runs.summaries import RunSummary

TWICE = 3.0
"""Seconds within which a second click on the same launch counts as a double click."""

P = ParamSpec("P")
T = TypeVar("T")


def refusal(run: RunRow | RunSummary | None = None) -> str | None:
    """Why this visitor may not start or change anything, or not this run; None if they may."""
    return sentences(resources.service().refusal(run))


def sentences(error: AccessError | None) -> str | None:
    """A refusal with its advice, as text."""
    return None if error is None else f"{error}. {error.advice or ''}".rstrip()


REFUSED_UPLOADS: Final[dict[str, str]] = {}
"""Session → why the upload was refused that its page has not spoken of yet."""


def refused_upload() -> None:
    """A toast with the reason, because the upload field itself shows only that it failed."""
    if reason := REFUSED_UPLOADS.pop(session_id() or "", None):
        st.toast(wording.plain(reason), icon=":material/block:", duration="long")


def notice() -> None:
    """Show viewers that they have read-only access, once per page."""
    if reason := refusal():
        st.caption(f":material/visibility: {wording.plain(reason)}")


def button(label: str, *, run: RunRow | RunSummary | None = None, disabled: bool = False, **options: Any) -> bool:
    """`st.button` for an action that changes the server; disabled, with the reason, if it is refused.

    Args:
        run: the run that the action changes.
    """
    if reason := refusal(run):
        options["help"] = wording.plain(reason)
    return st.button(label, disabled=disabled or reason is not None, **options)


def attempt(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """The action's result, or None if it was refused. A toast, which survives a rerun, shows the refusal."""
    try:
        return action(*args, **kwargs)
    except IsoVizError as error:
        advice = f"  \n{wording.plain(error.advice)}" if error.advice else ""
        st.toast(wording.plain(str(error)) + advice, icon=":material/block:", duration="long")
        return None


def noted(problem: str, action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """In a callback: the action's result, or None if it was refused. The session then has the error under the key `problem`."""
    st.session_state[problem] = None
    try:
        return action(*args, **kwargs)
    except IsoVizError as error:
        st.session_state[problem] = error
        return None


def launch(configs: Sequence[RunConfig], name: str) -> None:
    """Create all runs in one transaction, and open Live."""
    identity = (name, *(config.model_dump_json() for config in configs))
    last = st.session_state.get("last_launch")
    if last is not None and last[0] == hash(identity) and time.monotonic() - last[1] < TWICE:
        group = last[2]
    else:
        ids = attempt(resources.service().launch, configs, group=name or experiment_name(configs), new=not name)
        if not ids:
            return
        group = resources.store().get(ids[0]).group
        st.session_state["last_launch"] = (hash(identity), time.monotonic(), group)
    st.switch_page(menu.LIVE, query_params={"group": group})


def perform(action: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Run an action that returns nothing; False if it was refused. Shows a refusal like `attempt`."""

    def acted() -> bool:
        action(*args, **kwargs)
        return True

    return attempt(acted) is True


def stopping_for(row: RunRow) -> float | None:
    """Seconds since the stop was requested, or since this visitor first saw the request; None without a request."""
    stop_times = st.session_state.setdefault("stop_asked", {})
    if not row.stop_requested or row.status != "running":
        stop_times.pop(row.id, None)
        return None
    first_seen = stop_times.setdefault(row.id, time.time())
    return time.time() - first_seen
