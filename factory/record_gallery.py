"""Writes the pages of docs/static.md's gallery from an empty store, which shows the bundled examples: `python -m factory.record_gallery`.

tests/dashboard/test_gallery.py fails when it has to run again.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import Final

from dashboard.export import at_address

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs/gallery"
GALLERY: Final = MappingProxyType(
    {
        "explore": "/explore?explore_tab=Across+layers",
        "whatif": "/whatif?whatif_from=Vectors+or+texts&chain=zca%3Astrength%3D0.5",
        "experiment": "/experiments?experiment=Example%3A+Nine+methods+on+two+tasks",
    }
)
"""File → address in the app."""


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"ISOVIZ_HOME": home, "ISOVIZ_EXAMPLES": "on", "ISOVIZ_RUNNER": "off", "ISOVIZ_SPARES": "off"}
        for name, address in GALLERY.items():
            (FOLDER / f"{name}.html").write_bytes(at_address.content(address, with_vectors=name == "explore"))


if __name__ == "__main__":
    main()
