"""Reporting parts of a link that a page ignores; Streamlit drops them silently."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import streamlit as st

from dashboard.shared import wording
from isoviz.errors import shortened

_TAKEN = "address:taken"
_REFUSED = "address:refused"
_MOST_LETTERS = 40
"""Most characters shown of a value."""


@contextlib.contextmanager
def report_ignored(prefix: str) -> Iterator[None]:
    """Context around a page's fields whose keys start with `prefix`: reports values in the address that the fields did not accept.

    A value that a field held when the page was last drawn was accepted; if it disappears, a button has changed the field.
    `refuse` reports values that belong to no field.
    """
    accepted: dict[str, str] = st.session_state.get(_TAKEN, {})
    current = {name: value for name, value in st.query_params.items() if name.startswith(prefix)}
    st.session_state[_REFUSED] = {}
    requested = {name: value for name, value in current.items() if accepted.get(name) != value}
    try:
        yield
    finally:  # also runs if the page reruns early; its address is then already clean
        # a field that is not drawn yet, because its data is still being computed, has accepted nothing
        fields = set(st.session_state)  # looking up an invalid name (empty, or Streamlit's own) would raise an error
        st.session_state[_TAKEN] = {name: value for name, value in st.query_params.items() if name in fields}
        ignored = dropped(requested, st.query_params, st.session_state) | st.session_state.pop(_REFUSED)
        if ignored:
            ignored_text = ", ".join(f"{name}={shortened(value, _MOST_LETTERS)}" for name, value in ignored.items())
            st.toast(
                f"Ignored an unknown part of the link: {wording.plain(ignored_text)}",
                icon=":material/link_off:",
                duration="infinite",
            )


def refuse(name: str) -> None:
    """Remove an unusable value from the address; the enclosing `report_ignored` reports it."""
    value = st.query_params.pop(name, None)
    if value is not None and _REFUSED in st.session_state:
        st.session_state[_REFUSED][name] = value


def dropped(requested: Mapping[str, str], now: Mapping[str, str], fields: Mapping[Any, Any]) -> dict[str, str]:
    """Values requested in the address that are no longer in it although their fields hold other values.

    Args:
        requested, now: the address before and after the fields were drawn; it omits fields at their defaults.
        fields: values of the fields, by key.
    """
    return {
        name: value
        for name, value in requested.items()
        if name in fields and now.get(name) != value and not _same(value, fields[name])
    }


def _same(requested: str, value: Any) -> bool:
    if isinstance(value, bool):
        return requested.lower() == str(value).lower()
    try:
        return float(requested) == float(value)
    except (TypeError, ValueError):
        return requested in (value, str("" if value is None else value)) or [requested] == value
