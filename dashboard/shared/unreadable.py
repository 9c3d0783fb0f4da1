"""Warning about unreadable runs on every page: their names, errors, and buttons to delete them."""

from __future__ import annotations

import streamlit as st

from dashboard.shared import resources, theme, wording
from dashboard.shared.actions import button, perform
from isoviz.errors import StoreError
from isoviz.runs.summaries import RunSummary

SHOWN = 5
"""Most unreadable runs listed."""


def draw() -> None:
    """Draw the warning, if there are unreadable runs."""
    try:
        store = resources.store()
        runs = _unreadable_runs(store.url, store.revision())
    except StoreError:  # the page reports it
        return
    if not runs:
        return
    with st.container(border=True, gap="xsmall"):
        count = len(runs)
        st.markdown(
            f":material/broken_image: **{count} run{'s' if count > 1 else ''} of this store cannot be read.** Tables and figures "
            "leave them out. Update IsoViz if a newer version wrote them; otherwise delete them."
        )
        for run in runs[:SHOWN]:
            _line(run)
        if count > SHOWN:
            st.caption(f"and {count - SHOWN} more")


@st.cache_data(ttl=5, max_entries=8, show_spinner=False)
def _unreadable_runs(store_url: str, revision: str) -> list[RunSummary]:
    """Cached for a few seconds, because every page asks; the first call reads every run of the store."""
    return resources.store().unreadable()


def _line(run: RunSummary) -> None:
    service = resources.service()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(theme.status_badge("unreadable"), width="content")
        st.markdown(wording.plain(f"{run.id} {run.name}"), width="content")
        st.caption(wording.plain(run.unreadable), width="stretch")
        if run.status == "running":
            if button("Stop", run=run, key=f"stop-unreadable-{run.id}") and perform(service.stop, run.id):
                st.rerun()
        elif button("Delete", run=run, key=f"delete-unreadable-{run.id}", icon=":material/delete:") and perform(
            service.delete, run.id
        ):
            st.rerun()
