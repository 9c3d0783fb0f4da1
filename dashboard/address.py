"""Parts of a link that no field and nothing else on a page can use. Streamlit drops them silently; the person who follows the link
must know."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st
from streamlit.runtime.state import query_params, session_state

from dashboard import wording

_TAKEN = "address:taken"
_REFUSED = "address:refused"
_MOST_LETTERS = 40
"""Of a value that are shown."""

_read = query_params.parse_url_param


def refuse_infinite_numbers() -> None:
    """Let an infinite number in an address (`1e309`, 400 digits) be refused like every other value that does not fit its field.

    Streamlit 1.67 refuses what raises a ValueError; a field of whole numbers raises an OverflowError there.
    """
    session_state.parse_url_param = _read_finite


def _read_finite(value: str | list[str], value_type: str) -> Any:
    read = _read(value, value_type)
    numbers = read if isinstance(read, list) else [read]
    if any(isinstance(number, float) and not math.isfinite(number) for number in numbers):
        raise ValueError("an infinite number")
    return read


@contextlib.contextmanager
def report_ignored(prefix: str) -> Iterator[None]:
    """Around the fields of a page whose keys begin so: reports which values of its address they did not take.

    What a field held when the page was last drawn was taken then; if it goes now, a button of the page has changed the field.
    What is no field's is told by `refuse`.
    """
    taken: dict[str, str] = st.session_state.get(_TAKEN, {})
    here = {name: value for name, value in st.query_params.items() if name.startswith(prefix)}
    st.session_state[_REFUSED] = {}
    requested = {name: value for name, value in here.items() if taken.get(name) != value}
    try:
        yield
    finally:  # a page may begin anew before its end, and then its address is clean already
        # a field that was not there yet, because it needs what is still being computed, has taken nothing
        fields = set(
            st.session_state
        )  # to ask for a name that no field can have (empty, or Streamlit's own) is an error
        st.session_state[_TAKEN] = {name: value for name, value in st.query_params.items() if name in fields}
        left = left_out(requested, st.query_params, st.session_state) | st.session_state.pop(_REFUSED)
        if left:
            refused = ", ".join(f"{name}={_cut(value)}" for name, value in left.items())
            st.toast(
                f"Ignored an unknown part of the link: {wording.plain(refused)}",
                icon=":material/link_off:",
                duration="infinite",
            )


def refuse(name: str) -> None:
    """Take out of the address what nothing on this page can use; the `report_ignored` around it says so."""
    value = st.query_params.pop(name, None)
    if value is not None and _REFUSED in st.session_state:
        st.session_state[_REFUSED][name] = value


def left_out(requested: Mapping[str, str], now: Mapping[str, str], fields: Mapping[Any, Any]) -> dict[str, str]:
    """What an address asked for that is no longer in it, although its field holds something else.

    Args:
        requested, now: the address before and after the fields were drawn; one that is at its default is no longer in it.
        fields: what the fields hold, by their keys.
    """
    return {
        name: value
        for name, value in requested.items()
        if name in fields and now.get(name) != value and not _same(value, fields[name])
    }


def _same(requested: str, held: Any) -> bool:
    try:
        return float(requested) == float(held)
    except (TypeError, ValueError):
        return requested == str("" if held is None else held)


def _cut(value: str) -> str:
    return value if len(value) <= _MOST_LETTERS else value[: _MOST_LETTERS - 1] + "…"
