"""The queue of runs: running and waiting runs, and buttons to stop and retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import streamlit as st

from dashboard.shared import actions, resources, run_lists, theme, wording
from dashboard.shared.run_lists import Filter
from dashboard.shared.stable import while_busy
from isoviz import devices
from isoviz.runs.rows import RunRow

WAITING_SHOWN = 6
FAILED: Final = ("failed", "lost")
"""Statuses that *Retry* queues again. A diverged run would diverge again."""


def panel(group: str) -> None:
    """Buttons to stop the runs of an experiment and to retry failed ones. Refreshes while any run or wait."""
    while_busy(lambda: run_lists.under_way(Filter(group)) > 0, lambda: _panel(group))


def _panel(group: str) -> None:
    library = resources.library()
    rows, failed = (library.list(status=some, group=group) for some in (("running", "queued"), FAILED))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if rows and actions.button(
            "Stop all",
            key="queue_stop",
            icon=":material/playlist_remove:",
            help="Waiting runs stop now, running ones after their current step. All of them can be resumed.",
        ):
            stop_all(rows)
        if failed and actions.button(
            f"Retry {len(failed)} failed" if len(failed) > 1 else "Retry failed run",
            key="queue_retry",
            icon=":material/refresh:",
            help="Queues them again, each from its last checkpoint.",
        ):
            _act(resources.service().resume, failed)


def lines(running: Sequence[RunRow], waiting: Sequence[RunRow], total: int, selected: str) -> str | None:
    """Running and waiting runs with their actions; returns the id of the run whose name was clicked.

    Args:
        total: number of waiting runs, of which `waiting` are the next.
        selected: the run that the page already shows, with its stop button.
    """
    clicked = [row.id for row in (*running, *waiting) if _line(row, selected=row.id == selected)]
    if total > len(waiting):
        st.caption(f"and {total - len(waiting)} more waiting")
    return clicked[0] if clicked else None


def _line(row: RunRow, *, selected: bool) -> bool:
    name = wording.plain(wording.run_title(row))
    pressed = False
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(theme.status_badge(row.status), width="content")
        if selected:
            st.markdown(f"**{name}**", width="content")
        else:
            pressed = st.button(name, key=f"watch-{row.id}", type="tertiary", help="Watch this run.")
        st.caption(_activity_text(row), width="stretch")
        if not selected:
            stop_button(row, key=f"stop-{row.id}")
    return pressed


def _activity_text(row: RunRow) -> str:
    if row.status == "queued":
        return wording.place(row) + _missing_gpus(row)
    since = actions.stopping_for(row)
    if since is not None:
        return f"stopping … {since:.0f} s"
    seconds_left = row.progress.eta_seconds if row.progress and row.progress.total_steps else None
    left = "" if seconds_left is None else f" · {wording.duration(seconds_left)} left"
    return run_lists.activity(row) + left


def _missing_gpus(row: RunRow) -> str:
    """What a run waits for if it has more processes than this machine has GPUs."""
    processes = row.config.processes
    if processes == 1:
        return ""
    machine = devices.describe()  # slow the first time
    if not machine.on_gpu or processes <= len(machine.slots):
        return ""
    return f" · needs a machine with {processes} GPUs, this one has {len(machine.slots)}"


def stop_all(rows: Iterable[RunRow]) -> None:
    """Stop the runs that this visitor may stop; waiting runs first, so that none starts meanwhile."""
    to_stop = [row for row in rows if not row.stop_requested]
    _act(resources.service().stop, sorted(to_stop, key=lambda row: row.status != "queued"))


def stop_button(row: RunRow, key: str) -> None:
    """Button to cancel or stop a run, depending on its status."""
    since = actions.stopping_for(row)
    if since is not None:
        st.button(f"Stopping … {since:.0f} s", key=key, disabled=True, icon=":material/hourglass_top:")
        return
    label, icon = ("Cancel", "cancel") if row.status == "queued" else ("Stop", "stop_circle")
    if actions.button(label, run=row, key=key, icon=f":material/{icon}:") and actions.perform(
        resources.service().stop, row.id
    ):
        st.rerun()


def _act(action: Callable[[str], object], rows: Iterable[RunRow]) -> None:
    """Run the action for the runs that this visitor may change, then rerun the page."""
    service = resources.service()
    for row in rows:
        if service.refusal(row) is None and not actions.perform(action, row.id):
            break  # the reason is shown once
    st.rerun()
