"""A button that copies the page's address."""

from __future__ import annotations

import streamlit as st

from dashboard.components import bundle

_HTML = '<div class="ivz-link"><button type="button">Copy link</button><span role="status"></span></div>'
_CSS = """
.ivz-link {
  display: flex; align-items: center; gap: 0.6rem; min-width: 0;
  font-family: var(--st-font); font-size: 0.86rem; color: var(--st-gray-text-color);
}
.ivz-link button {
  font: inherit; font-size: 1rem; white-space: nowrap; cursor: pointer; min-height: 2.5rem; padding: 0 0.75rem;
  color: var(--st-text-color); background: var(--st-background-color);
  border: 1px solid var(--st-border-color); border-radius: var(--st-button-radius);
}
.ivz-link button:hover { border-color: var(--st-primary-color); color: var(--st-primary-color); }
.ivz-link button:focus-visible { outline: 2px solid var(--st-primary-color); outline-offset: 1px; }
.ivz-link span { overflow-wrap: anywhere; }
"""
_JS = """
export default function ({ parentElement }) {
  const button = parentElement.querySelector("button");
  const status = parentElement.querySelector("span");
  button.onclick = () => copied(globalThis.location.href, status);
}
"""

_mount = st.components.v2.component("isoviz_copy_link", html=_HTML, css=_CSS, js=bundle("copied.js") + _JS)


def copy_link(*, key: str) -> None:
    """Mount the button. If the browser does not allow copying, it shows the address."""
    _mount(key=key, data={})
