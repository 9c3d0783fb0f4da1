"""The end of a run's log, as plain text."""

from __future__ import annotations

import os
from pathlib import Path

import streamlit as st

from dashboard.shared import resources
from dashboard.shared.steady import TICK
from isoviz.runs.execution import LOG
from isoviz.runs.rows import RunRow

TAIL = 20_000
"""Bytes shown of a log."""


def panel(run: RunRow) -> None:
    """An expander with the log's end, read only while open."""
    with st.expander("Log", icon=":material/terminal:", key="log", on_change="rerun") as expander:
        if expander.open:
            st.fragment(_tail, run_every=TICK if run.status == "running" else None)(run.id)


def _tail(run_id: str) -> None:
    path = resources.library().folder_of(run_id) / LOG
    text = read_tail(path)
    if text is None:
        st.caption("The log is empty.")
        return
    st.code(text, language=None, wrap_lines=True, height=320)
    st.caption(f"The end of {LOG} in the run's folder, {path.stat().st_size:,} bytes in all.")


def read_tail(path: Path, limit: int = TAIL) -> str | None:
    """The last `limit` bytes as text, starting at a line. Progress bars show only their last state."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(0, length - limit))
            text = file.read().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    if length > limit:
        text = text[text.find("\n") + 1 :]
    lines = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").split("\n")]
    return "\n".join(lines).strip("\n") or None
