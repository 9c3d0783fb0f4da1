"""The scripts and styles for people's own vectors, to be loaded after the playground's."""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from dashboard.components import bundle
from dashboard.components.playground import source
from isoviz.lessons.state import PARAMETERS, State

if TYPE_CHECKING:
    from isoviz.whatif.chains import Step

LIBRARIES = Path(__file__).with_name("libraries")
ENCODER = Path(__file__).with_name("encoder")


@functools.cache
def engine() -> str:
    """The computing part with the readers of files, as a classic script without message handling."""
    libraries = (path.read_text("utf-8") for path in sorted(LIBRARIES.glob("*.min.js")))
    own = source.stripped(
        bundle(
            *(
                f"lab/{name}.js"
                for name in ("kernels", "readers", "written", "encoder", "labels", "own_engine", "frontier")
            )
        )
    )
    return "\n".join((*libraries, source.engine(), own))


@functools.cache
def script() -> str:
    worker = f"{engine()}\nserve(globalThis, new OwnEngine());\n"
    return f"const LAB_SOURCE = {source.as_text(worker)};\n{bundle('lab/labels.js', 'lab/frontier_view.js', 'lab/own_vectors.js')}"


@functools.cache
def encoder() -> dict[str, str]:
    """The page's encoder of texts: its pieces, one a line, and their vectors as a .npy file in base64."""
    npy = base64.b64encode((ENCODER / "tokens.npy").read_bytes()).decode()
    return {"pieces": (ENCODER / "tokens.txt").read_text("ascii"), "npy": npy}


def transforms(steps: Iterable[Step]) -> list[dict[str, Any]] | None:
    """A chain as the page's state holds it; None if the page cannot compute it."""
    found = []
    for step in steps:
        known = PARAMETERS.get(step.slug, {})
        values = {name: value for name, value in step.params.model_dump().items() if name in known}
        if not step.changed.keys() <= known.keys() or None in values.values():  # None: depends on the cloud
            return None
        found.append({"slug": "centring" if step.slug == "mean_removal" else step.slug, **values})
    try:
        State.model_validate({"transforms": found})
    except ValidationError:  # beyond the page's bounds
        return None
    return found


@functools.cache
def styles() -> str:
    return bundle("lab/lab.css")
