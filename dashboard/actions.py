"""Things a person asks for with a button, and what is said when they cannot be done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import streamlit as st

from dashboard import menu, resources, wording
from isoviz.config import RunConfig
from isoviz.errors import AccessError, IsoVizError
from isoviz.runs import planning
from isoviz.runs.rows import RunRow
from isoviz.runs.summaries import RunSummary

TWICE = 3.0
"""Seconds within which a second press of the same launch is a double click."""

P = ParamSpec("P")
T = TypeVar("T")


def why_not(run: RunRow | RunSummary | None = None) -> str | None:
    """Why this visitor may not start or change anything, or not this run; None if they may."""
    return sentences(resources.service().refusal(run))


def sentences(refused: AccessError | None) -> str | None:
    """A refusal with what can be done about it."""
    return None if refused is None else f"{refused}. {refused.advice or ''}".rstrip()


def notice() -> None:
    """Tells viewers that they can only look, once on each page."""
    if reason := why_not():
        st.caption(f":material/visibility: {wording.plain(reason)}")


def button(label: str, *, run: RunRow | RunSummary | None = None, disabled: bool = False, **options: Any) -> bool:
    """`st.button` for something that starts or changes what lies on the server; disabled, with the reason, where that is refused.

    Args:
        run: the run that it changes.
    """
    if reason := why_not(run):
        options["help"] = wording.plain(reason)
    return st.button(label, disabled=disabled or reason is not None, **options)


def attempt(action: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """What the action returns, or None if it was refused; a refusal is told in a toast, which outlives a refresh."""
    try:
        return action(*args, **kwargs)
    except IsoVizError as error:
        advice = f"  \n{wording.plain(error.advice)}" if error.advice else ""
        st.toast(wording.plain(str(error)) + advice, icon=":material/block:", duration="long")
        return None


def launch(configs: Sequence[RunConfig], name: str) -> None:
    """Create all runs in one go, or none, and show them live."""
    identity = (name, *(config.model_dump_json() for config in configs))
    last = st.session_state.get("last_launch")
    if last is not None and last[0] == hash(identity) and time.monotonic() - last[1] < TWICE:
        group = last[2]
    else:
        group = name or planning.new_group()
        if not attempt(resources.service().launch, configs, group=group):
            return
        st.session_state["last_launch"] = (hash(identity), time.monotonic(), group)
    st.switch_page(menu.LIVE, query_params={"group": group})


def done(action: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> bool:
    """Whether an action that returns nothing was done; a refusal is told as in `attempt`."""
    return attempt(_then_true(action), *args, **kwargs) is True


def _then_true(action: Callable[P, object]) -> Callable[P, bool]:
    def acted(*args: P.args, **kwargs: P.kwargs) -> bool:
        action(*args, **kwargs)
        return True

    return acted


def remember_stop(run_id: str) -> None:
    """Note that this visitor asked a run to stop now, to count the seconds for them."""
    st.session_state.setdefault("stop_asked", {})[run_id] = time.time()


def stopping_for(row: RunRow) -> float | None:
    """Seconds since the stop was requested, or since this visitor first saw that it was; None if it was not."""
    stop_times = st.session_state.setdefault("stop_asked", {})
    if not row.stop_requested or row.status != "running":
        stop_times.pop(row.id, None)
        return None
    first_seen = stop_times.setdefault(row.id, time.time())
    return time.time() - first_seen
