"""Components in plain JavaScript without a build step: live lines, the matrix, the map of a cloud.

Streamlit loads a component's script as one inline module, so `bundle` puts the files of a component one after another.
Each file is an ES module without imports, and its exports are in scope for the files after it.
"""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def bundle(*names: str) -> str:
    """The named files of this folder, one after the other."""
    return "\n".join((HERE / name).read_text(encoding="utf-8") for name in names)
