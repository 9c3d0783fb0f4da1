"""How far a job in the background is, and the button that ends it: the same wherever a page waits for one."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import wording
from isoviz.exploring.jobs import State


def draw(state: State, stop: Callable[[], None], *, key: str) -> None:
    """The progress of a job that runs.

    Args:
        stop: ends the job; the page is drawn anew after it.
        key: of the button.
    """
    told = state.progress
    words = f"{100 * told.fraction:.0f} % · {told.text} · {wording.duration(state.seconds)}"
    st.progress(told.fraction, text=wording.plain(words))
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if st.button("Stop", key=key, icon=":material/stop_circle:"):
            stop()
            st.rerun()
        st.caption("Goes on if you leave this page; its address shows it again.")
