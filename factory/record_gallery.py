"""Freezes the examples of docs/static.md's gallery: `python -m factory.record_gallery`.

Writes docs/gallery/*.html with `isoviz freeze` from an empty store, which shows the bundled examples, in some ten seconds.
tests/commands/test_freeze.py fails when it has to run again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from isoviz.__main__ import main as isoviz

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs/gallery"
GALLERY: Final = MappingProxyType(
    {
        "explore": "/explore?explore_tab=Across+layers",
        "whatif": "/whatif?whatif_from=Vectors+or+texts&chain=zca%3Astrength%3D0.5",
        "experiment": "/experiments?experiment=Example%3A+Nine+methods+on+two+tasks",
    }
)
"""File → address in the app."""
OPTIONS: Final = MappingProxyType({"explore": ["--with-vectors", "--all-layers"]})


def main() -> int:
    """0 after all files are written."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"ISOVIZ_HOME": home, "ISOVIZ_EXAMPLES": "on"}
        return max(
            isoviz(["freeze", address, "--out", str(FOLDER / f"{name}.html"), "--store", home, *OPTIONS.get(name, [])])
            for name, address in GALLERY.items()
        )


if __name__ == "__main__":
    raise SystemExit(main())
