"""The queue of runs: what runs and waits, how long that takes, and the buttons that reorder, stop and retry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import streamlit as st

from dashboard import actions, menu, resources, theme, timing, wording
from dashboard.run_lists import cached
from isoviz.runs.queue_order import PRIORITIES, Move
from isoviz.runs.rows import RunProgress, RunRow

TICK = 2.0
"""Seconds between looks at the queue while something runs or waits."""
WAITING_SHOWN = 6
STOP_NOW_SECONDS = 3.0
"""After so long a run that was asked to stop can be ended at once."""
FAILED: Final = ("failed", "lost")
"""What *Retry* queues again. A diverged run would diverge again."""
_MOVES: Final[dict[Move, str]] = {
    "first": "Run first",
    "up": "One place up",
    "down": "One place down",
    "last": "Run last",
}


def panel(group: str | None = None) -> None:
    """What runs and waits, of one experiment or of all, with how long that takes. Refreshes itself while there is any.

    Of one experiment also: retry what failed, and its priority.
    """
    under_way = _under_way(group)
    st.fragment(_panel, run_every=TICK if under_way else None)(group, bool(under_way))


def _panel(group: str | None, was_busy: bool) -> None:
    rows = _under_way(group)
    if was_busy and not rows:
        st.rerun()
    failed = [] if group is None else resources.library().list(status=FAILED, group=group)
    if not rows and not failed:
        return
    total = resources.library().counts()["queued"]
    waiting = [row for row in rows if row.status == "queued"]
    with st.container(border=True, gap="xsmall"):
        st.markdown(" · ".join(filter(None, ["**Queue**", _summary(rows)])))
        for row in [row for row in rows if row.status == "running"] + waiting[:WAITING_SHOWN]:
            if line(row, total):
                st.switch_page(menu.LIVE, query_params={"run": row.id})
        if len(waiting) > WAITING_SHOWN:
            st.caption(f"and {len(waiting) - WAITING_SHOWN} more waiting")
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
                _priority([row for row in waiting if row.owner is None])


def _under_way(group: str | None) -> list[RunRow]:
    """Running, then waiting runs in their order."""
    library = resources.library()
    running = library.list(status="running", group=group)
    return running + cached(("waiting", group), lambda: library.list(status="queued", group=group, order="queue"))


def _summary(rows: Sequence[RunRow]) -> str:
    """How many run and wait, and when the last of them will have finished, where runs like these were measured here."""
    waiting = [row for row in rows if row.status == "queued"]
    counts = {"running": len(rows) - len(waiting), "waiting": len(waiting)}
    words = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
    if not waiting:
        return words
    last = max(row.position or 0 for row in waiting)
    ahead = [row for row in _under_way(None) if row.status == "running" or (row.position or 0) <= last]
    found = timing.remaining(ahead)
    return f"{words} · {found.words()}, {found.source(len(ahead))}" if found.measured else words


def line(row: RunRow, total: int, *, selected: bool = False) -> bool:
    """One run with what can be done with it; whether its name was pressed.

    Args:
        total: how many runs wait.
        selected: the page shows this run already, with its stop button.
    """
    name = wording.plain(wording.run_title(row))
    pressed = False
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(theme.status_badge(row.status), width="content")
        if selected:
            st.markdown(f"**{name}**", width="content")
        else:
            pressed = st.button(name, key=f"watch-{row.id}", type="tertiary", help="Watch this run.")
        st.caption(_doing(row), width="stretch")
        if row.position is not None and total > 1:
            _move_menu(row)
        if not selected:
            stop_button(row, key=f"stop-{row.id}")
    return pressed


def _doing(row: RunRow) -> str:
    if row.status == "queued":
        levels = {value: f" · {level} priority" for level, value in PRIORITIES.items() if value}
        return wording.place(row) + levels.get(row.priority, "")
    since = actions.stopping_for(row)
    if since is not None:
        return f"stopping … {since:.0f} s"
    progress = row.progress or RunProgress()
    if not progress.total_steps:
        return wording.plain(progress.phase or "starting")
    words = f"step {progress.step} of {progress.total_steps}"
    left = progress.eta_seconds
    return words if left is None else f"{words} · {wording.duration(left)} left"


def more_waiting(listed: int, total: int) -> None:
    """How many more wait than are listed, and the button that stops them all."""
    if total > listed:
        st.caption(f"and {total - listed} more waiting")
    if total > 1 and actions.button("Stop all waiting runs", type="tertiary", icon=":material/playlist_remove:"):
        stop_all(resources.library().list(status="queued"))


def stop_all(rows: Iterable[RunRow]) -> None:
    """Stop those of these runs that this visitor may stop; waiting ones first, so that none of them begins meanwhile."""
    to_stop = [row for row in rows if not row.stop_requested]  # asked twice, a run ends without a checkpoint
    _act(resources.service().stop, sorted(to_stop, key=lambda row: row.status != "queued"))


def _move_menu(row: RunRow) -> None:
    reason = actions.sentences(resources.service().queue_refusal())
    chosen = st.menu_button(
        "Move",
        list(_MOVES),
        format_func=_MOVES.__getitem__,
        key=f"move-{row.id}",
        type="tertiary",
        icon=":material/swap_vert:",
        disabled=reason is not None,
        help=None if reason is None else wording.plain(reason),
    )
    if chosen and actions.done(resources.service().move, row.id, chosen):
        st.rerun()


def _priority(waiting: Sequence[RunRow]) -> None:
    reason = actions.sentences(resources.service().queue_refusal())
    levels = {value: level for level, value in PRIORITIES.items()}
    now = {row.priority for row in waiting}
    level = levels.get(next(iter(now)), "mixed") if len(now) == 1 else "mixed"
    chosen = st.menu_button(
        f"Priority: {level}",
        list(PRIORITIES),
        format_func=str.capitalize,
        key="queue_priority",
        icon=":material/low_priority:",
        disabled=reason is not None,
        help="Waiting runs with a high priority start before all others." if reason is None else wording.plain(reason),
    )
    ids = [row.id for row in waiting]
    if chosen and actions.done(resources.service().set_priority, ids, PRIORITIES[chosen]):
        st.rerun()


def stop_button(row: RunRow, key: str) -> None:
    """Cancel, stop, or stop at once, as far as the run has come."""
    since = actions.stopping_for(row)
    if since is not None and since < STOP_NOW_SECONDS:
        st.button(f"Stopping … {since:.0f} s", key=key, disabled=True, icon=":material/hourglass_top:")
        return
    if since is not None:
        if actions.button(
            "Stop now",
            run=row,
            key=key,
            icon=":material/dangerous:",
            help="The run is finishing its optimiser step and writing a checkpoint. This ends it at once, without one.",
        ):
            actions.done(resources.service().stop, row.id)
        return
    word, icon = ("Cancel", "cancel") if row.status == "queued" else ("Stop", "stop_circle")
    if actions.button(word, run=row, key=key, icon=f":material/{icon}:") and actions.done(
        resources.service().stop, row.id
    ):
        actions.remember_stop(row.id)
        st.rerun()


def _act(action: Callable[[str], object], rows: Iterable[RunRow]) -> None:
    """Do it for those runs that this visitor may change, then draw the page anew."""
    service = resources.service()
    for row in rows:
        if service.refusal(row) is None and not actions.done(action, row.id):
            break  # the reason is shown once
    st.rerun()
