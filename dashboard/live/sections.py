"""Sections of the Live page: running and waiting runs, the selected run with its actions, curves and log."""

from __future__ import annotations

import streamlit as st

from dashboard.components.live_lines import live_lines
from dashboard.components.matrix import matrix
from dashboard.live import queue
from dashboard.shared import choosing, examples, menu, resources, run_lists, wording
from dashboard.shared.actions import attempt, button, perform
from dashboard.shared.run_lists import Filter
from dashboard.shared.stable import while_busy
from isoviz.errors import StoreError
from isoviz.events import ENDINGS, RESUMABLE
from isoviz.runs.examples import is_example
from isoviz.runs.rows import RunRow

OVERLAID = 8
"""Most runs overlaid in one figure; more would be unreadable."""
REPLAY = "replay"
"""Query parameter: replay a finished run at this multiple of its speed."""
SPEEDS = (1, 2, 5, 10, 20, 60)


def selected() -> RunRow | None:
    """The run to show: `?run=ID`, else the newest running run, else the next waiting run, else the latest.

    With `?group=NAME` (an experiment just launched), its runs come first.
    """
    return run_lists.of_address("run") or _default()


def _default() -> RunRow | None:
    store = resources.library()
    group_of_address = st.query_params.get("group")
    for group in (group_of_address, None) if group_of_address else (None,):
        for rows in (
            store.list(status="running", group=group, limit=1),
            store.list(status="queued", group=group, order="queue", limit=1),
            store.list(group=group, limit=1),
        ):
            if rows:
                return rows[0]
    return None if store.examples is None else store.examples.featured()


def empty_state() -> None:
    """Empty state of the page."""
    choosing.empty_state(
        "Launch a run to watch its loss, task metric, isotropy, spectrum and correlation matrix while it trains. The "
        "*60-second demo* compares three methods on the bundled model.",
        "demo",
        "Start with the 60-second demo",
    )


def activity(run: RunRow) -> None:
    """Running and waiting runs, and actions for the selected run. Refreshes while runs run or wait."""
    pinned = st.query_params.get("run") == run.id
    while_busy(resources.is_busy, lambda: _activity(run.id, run.status, pinned))


def _activity(run_id: str, status: str, pinned: bool) -> None:
    store = resources.library()
    try:
        run = store.get(run_id)
    except StoreError:  # just deleted
        st.rerun()
    follow = None if pinned else _default()
    if run.status != status or (follow is not None and follow.id != run_id):
        st.rerun()  # the selected run has ended, or another has started: redraw the page
    running = store.list(status="running")
    waiting = store.list(status="queued", order="queue", limit=queue.WAITING_SHOWN)
    if any(row.id != run_id for row in [*running, *waiting]):
        total = store.counts()["queued"]
        with st.container(border=True, gap="xsmall"):
            if clicked := queue.lines(running, waiting, total, run_id):
                st.query_params["run"] = clicked
                st.rerun()
            stop_waiting = "Stop all waiting runs"
            if total > 1 and button(stop_waiting, type="tertiary", icon=":material/playlist_remove:"):
                queue.stop_all(store.list(status="queued"))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if is_example(run.id):
            st.markdown(examples.BADGE, width="content")
        st.page_link(menu.RUN, label="Run page", icon=":material/article:", query_params={"id": run.id})
        experiment_link(run)
        buttons(run, "run")
    trouble(run)


def experiment_link(run: RunRow) -> None:
    """Link to the run's experiment, if it has one."""
    if run.group is not None:
        query = {"experiment": run.group}
        st.page_link(menu.EXPERIMENTS, label="Experiment", icon=":material/science:", query_params=query)


def buttons(run: RunRow, address: str) -> None:
    """Buttons to stop, resume or run again, depending on the status. `address`: the page's query parameter for a run."""
    if run.status not in ENDINGS:
        queue.stop_button(run, key="stop-chosen")
        return
    if (
        run.status in RESUMABLE
        and button("Resume", run=run, icon=":material/resume:", key="resume", help="From its last checkpoint.")
        and perform(resources.service().resume, run.id)
    ):
        st.rerun()
    if button("Run again", icon=":material/replay:", key="again", help="A new run with the same configuration."):
        created = attempt(resources.service().run_again, run.id)
        if created:
            st.query_params[address] = created
            st.rerun()


def trouble(run: RunRow) -> None:
    """A run's error and advice, if it failed."""
    error = run.error or {}
    if run.status in ("failed", "diverged", "lost"):
        message = wording.plain(str(error.get("message") or f"the run is {run.status}"))
        advice = wording.plain(str(error.get("advice") or "Open the run's log for details."))
        st.error(f"**{run.status.capitalize()}:** {message}  \n{advice}", icon=":material/error:")
    elif run.status == "stopped":
        st.info(
            "Stopped on request. *Resume* continues from the last checkpoint and gives the same numbers as an uninterrupted run.",
            icon=":material/stop_circle:",
        )


def finding(run: RunRow) -> None:
    """What the run's experiment shows once all of it has ended, with a button for more seeds; empty for a single method."""
    if run.group is None or run.status not in ENDINGS:
        return
    from dashboard.experiments import sections as experiments
    from dashboard.results import comparison

    frame = run_lists.frame(Filter(run.group))
    if not frame["status"].isin(ENDINGS).all():
        return
    sentences = [
        sentence
        for task, runs in frame.groupby("task", sort=False)
        for sentence in comparison.sentences(str(task), runs)
    ]
    if not sentences:
        return
    with st.container(border=True):
        st.markdown("**What these runs show**")
        st.markdown("\n".join(f"- {wording.plain(sentence)}" for sentence in sentences))
        experiments.add_seeds(run.group)
        link = {"results_group": run.group}
        st.page_link(menu.RESULTS, label="All seeds and tests", icon=":material/table_chart:", query_params=link)


def charts(run: RunRow) -> None:
    """The curves and the matrix of the selected run, or its whole experiment overlaid."""
    overlaid = [run]
    if run.group is not None:
        siblings = resources.library().list(group=run.group, limit=200)
        if len(siblings) > 1 and st.toggle(
            f"Overlay the {len(siblings)} runs of this experiment", key="overlay", bind="query-params"
        ):
            siblings.sort(key=lambda row: (row.id != run.id, row.status == "queued", row.config.method != "baseline"))
            overlaid = siblings[:OVERLAID]
            if len(siblings) > OVERLAID:
                st.caption(
                    f"Shows the selected run and {OVERLAID - 1} of the other {len(siblings) - 1}: runs that have begun, baselines first."
                )
    speed = st.query_params.get(REPLAY, "")  # `?run=ID&replay=10` replays a finished run at ten times its speed
    live_lines(overlaid, key="live-lines", replay=int(speed) if speed in map(str, SPEEDS) else None)
    matrix(run, key="live-matrix")
