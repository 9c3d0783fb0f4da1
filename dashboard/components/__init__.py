"""Our components, in plain JavaScript without a build step: live lines, the matrix, the map of a cloud, a link to copy.

Streamlit loads a component's script as one inline module, so `bundle` puts the files of a component one after another.
Each file is an ES module of its own without imports, and what it exports is in scope for those after it.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def bundle(*names: str) -> str:
    """The named files of this folder, one after the other."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)
