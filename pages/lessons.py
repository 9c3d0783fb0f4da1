"""Lessons: guess first, then watch a cloud move and see how far off you were."""

import streamlit as st

from dashboard.components.lessons.mounted import lessons
from dashboard.shared import menu

st.title("Lessons", anchor=False)
menu.views(menu.LESSONS)
st.caption("Guess first. The lesson then moves the cloud and shows how far off you were. Five minutes each.")
lessons(key="lessons")
