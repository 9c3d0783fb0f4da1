"""The entrypoint of every page visit: page settings, menu, and links to running work."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

import streamlit as st  # noqa: E402

from dashboard.shared import actions, exported, menu, resources, visitor  # noqa: E402

STATIC = ROOT / "dashboard" / "static"

st.set_page_config(page_icon=str(STATIC / "icon.png"), layout="wide")
st.logo(str(STATIC / "logo.svg"), icon_image=str(STATIC / "icon.svg"), size="large")
resources.guard_files()
page = st.navigation(menu.pages(), expanded=True)
if st.runtime.exists():  # a page that is only imported has no title
    st.set_page_config(page_title=f"{page.title} · IsoViz")
visitor.current()  # stops the script if the visitor's access has ended
visitor.offer_logout()
resources.runner()
menu.activity(page)
# A lesson begins with itself: viewers can do everything there except open a class.
if page.url_path != "lessons":
    actions.notice()
actions.refused_upload()
exported.begin()
with resources.drawing():
    page.run()
if page.url_path == "lessons":
    actions.notice()
