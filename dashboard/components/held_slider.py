"""Sliders whose page follows while they are held: Streamlit sends a value only when the slider is released."""

from __future__ import annotations

import streamlit as st

from dashboard.components import HERE

_mount = st.components.v2.component("isoviz_held_slider", js=(HERE / "held_slider.js").read_text(encoding="utf-8"))


def follow_held_sliders(container: str) -> None:
    """Mount it, which shows nothing.

    Args:
        container: the key of the container with the sliders, of which there is one on the page.
    """
    _mount(key=f"{container}_held", data={"container": container})
