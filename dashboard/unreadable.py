"""Runs of the store that cannot be read, on every page: which, why, and how to delete them."""

from __future__ import annotations

import streamlit as st

from dashboard import resources, theme, wording
from dashboard.actions import button, done
from isoviz.errors import StoreError
from isoviz.runs.summaries import RunSummary

SHOWN = 5
"""Listed on a page at once."""


def draw() -> None:
    """Nothing where every run can be read."""
    try:
        store = resources.store()
        runs = _found(store.url, store.revision())
    except StoreError:  # the page itself says so
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
def _found(store_url: str, revision: str) -> list[RunSummary]:
    """Looked for every few seconds only: it takes a look at every run of the store."""
    return resources.store().unreadable()


def _line(run: RunSummary) -> None:
    service = resources.service()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(theme.status_badge("unreadable"), width="content")
        st.markdown(wording.plain(f"{run.id} {run.name}"), width="content")
        st.caption(wording.plain(run.unreadable), width="stretch")
        if run.status == "running":
            if button("Stop", run=run, key=f"stop-unreadable-{run.id}") and done(service.stop, run.id):
                st.rerun()
        elif button("Delete", run=run, key=f"delete-unreadable-{run.id}", icon=":material/delete:") and done(
            service.delete, run.id
        ):
            st.rerun()
