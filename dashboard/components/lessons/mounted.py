"""The lessons on a page."""

from __future__ import annotations

import streamlit as st

from dashboard.components import bundle
from dashboard.components.lessons import source
from dashboard.components.playground import source as playground_source
from dashboard.shared import resources, wording
from isoviz.lessons import on_this_server

_mount = st.components.v2.component(
    "isoviz_lessons",
    html='<div class="ivl-root"></div>',
    css=f"{playground_source.styles()}\n{source.styles()}\n{bundle('lessons/classroom.css')}",
    js=f"{playground_source.script()}\n{source.script()}\n{bundle('lessons/classroom.js', 'lessons/mounted.js')}",
)


def lessons(*, key: str) -> None:
    """Mount the lessons. They run in the browser without reruns; the address holds the lesson and the step."""
    available, problems = on_this_server()
    may_open = resources.service().refusal() is None
    if problems and may_open:
        st.error("  \n".join(["Some of your lessons were left out:", *map(wording.plain, problems)]))
    _mount(
        key=key, data={"words": playground_source.words(), "lessons": source.documents(available), "mayOpen": may_open}
    )
