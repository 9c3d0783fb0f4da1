"""The scripts and styles for people's own vectors, to be loaded after the playground's."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dashboard.components import bundle
from dashboard.components.playground import source
from isoviz.whatif.chains import Step

_PARAMETERS = {"all_but_the_top": {"remove"}, "zca": {"strength", "eps"}, "isobn": {"beta"}, "batch_norm": {"eps"}}
LIBRARIES = Path(__file__).with_name("libraries")


@functools.cache
def engine() -> str:
    """The computing part with the readers of files, as a classic script without message handling."""
    libraries = (path.read_text("utf-8") for path in sorted(LIBRARIES.glob("*.min.js")))
    own = source.stripped(bundle("lab/readers.js", "lab/labels.js", "lab/own_engine.js", "lab/frontier.js"))
    return "\n".join((*libraries, source.engine(), own))


@functools.cache
def script() -> str:
    worker = f"{engine()}\nserve(globalThis, new OwnEngine());\n"
    return f"const LAB_SOURCE = {source.as_text(worker)};\n{bundle('lab/labels.js', 'lab/frontier_view.js', 'lab/own_vectors.js')}"


def transforms(steps: Iterable[Step]) -> list[dict[str, Any]] | None:
    """A chain as the page's state holds it; None if the page lacks one of its steps."""
    found = []
    for step in steps:
        if step.slug == "mean_removal":
            found.append({"slug": "centring"})
        elif step.changed.keys() <= _PARAMETERS.get(step.slug, set()) and step.slug in _PARAMETERS:
            values = step.params.model_dump()
            found.append({"slug": step.slug, **{name: values[name] for name in _PARAMETERS[step.slug]}})
        else:
            return None
    return found


@functools.cache
def styles() -> str:
    return bundle("lab/lab.css")
