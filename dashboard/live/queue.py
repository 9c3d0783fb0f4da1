"""The queue of runs: running and waiting runs, estimated time, and buttons to prefer, stop and retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

import streamlit as st

from dashboard.shared import actions, menu, resources, run_lists, theme, wording
from dashboard.shared.run_lists import cached
from dashboard.shared.stable import while_busy
from isoviz import devices
from isoviz.runs.rows import RunRow
from isoviz.runs.schema import PRIORITIES, Priority

WAITING_SHOWN = 6
FAILED: Final = ("failed", "lost")
"""Statuses that *Retry* queues again. A diverged run would diverge again."""


def panel(group: str | None = None) -> None:
    """Running and waiting runs of one experiment or of all, with the estimated time. Refreshes while there are any.

    For one experiment also: a retry button for failed runs.
    """
    while_busy(lambda: bool(_under_way(group)), lambda: _panel(group))


def _panel(group: str | None) -> None:
    rows = _under_way(group)
    failed = [] if group is None else resources.library().list(status=FAILED, group=group)
    if not rows and not failed:
        return
    total = resources.library().counts()["queued"]
    waiting = [row for row in rows if row.status == "queued"]
    with st.container(border=True, gap="xsmall"):
        st.markdown(" · ".join(filter(None, ["**Queue**", _summary(rows)])))
        running = [row for row in rows if row.status == "running"]
        if clicked := lines(running, waiting, total, of=len(waiting)):
            st.switch_page(menu.LIVE, query_params={"run": clicked})
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
            if group is not None and waiting:
                _priority([row for row in waiting if row.owner is None], "queue_priority")


def _under_way(group: str | None) -> list[RunRow]:
    """Running runs, then waiting runs in order."""
    library = resources.library()
    running = library.list(status="running", group=group)
    return running + cached(("waiting", group), lambda: library.list(status="queued", group=group, order="queue"))


def _summary(rows: Sequence[RunRow]) -> str:
    """Numbers of running and waiting runs."""
    waiting = sum(row.status == "queued" for row in rows)
    counts = {"running": len(rows) - waiting, "waiting": waiting}
    return ", ".join(f"{count} {status}" for status, count in counts.items() if count)


def lines(
    running: Sequence[RunRow],
    waiting: Sequence[RunRow],
    total: int,
    *,
    of: int | None = None,
    selected: str | None = None,
) -> str | None:
    """Running and waiting runs with their actions; returns the id of the run whose name was clicked.

    Args:
        total: number of waiting runs in the queue.
        of: number of waiting runs of which these are some; None for `total`.
        selected: the run that the page already shows, with its stop button.
    """
    shown = [*running, *waiting[:WAITING_SHOWN]]
    clicked = [row.id for row in shown if _line(row, total, selected=row.id == selected)]
    more = (total if of is None else of) - len(waiting[:WAITING_SHOWN])
    if more > 0:
        st.caption(f"and {more} more waiting")
    return clicked[0] if clicked else None


def _line(row: RunRow, total: int, *, selected: bool) -> bool:
    name = wording.plain(wording.run_title(row))
    pressed = False
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(theme.status_badge(row.status), width="content")
        if selected:
            st.markdown(f"**{name}**", width="content")
        else:
            pressed = st.button(name, key=f"watch-{row.id}", type="tertiary", help="Watch this run.")
        st.caption(_activity_text(row), width="stretch")
        if row.position is not None and total > 1:
            _priority([row], f"priority-{row.id}")
        if not selected:
            stop_button(row, key=f"stop-{row.id}")
    return pressed


def _activity_text(row: RunRow) -> str:
    if row.status == "queued":
        levels = {value: f" · {level} priority" for level, value in PRIORITIES.items() if value}
        return wording.place(row) + levels.get(row.priority, "") + _missing_gpus(row)
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


def _priority(waiting: Sequence[RunRow], key: str) -> None:
    """A menu of priorities; disabled, with the reason, if this visitor may not set them."""
    levels = {value: level for level, value in PRIORITIES.items()}
    now = {levels.get(row.priority, "mixed") for row in waiting}
    level = now.pop() if len(now) == 1 else "mixed"
    ids = [row.id for row in waiting]
    reason = actions.sentences(resources.service().queue_refusal())
    selected = st.menu_button(
        f"Priority: {level}",
        list(PRIORITIES),
        disabled=reason is not None,
        help=wording.plain(reason) if reason else "Waiting runs with a high priority start before all others.",
        format_func=str.capitalize,
        key=key,
        type="tertiary",
        icon=":material/low_priority:",
    )
    if selected and actions.perform(resources.service().set_priority, ids, PRIORITIES[cast(Priority, selected)]):
        st.rerun()


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
