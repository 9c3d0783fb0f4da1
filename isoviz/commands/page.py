"""`isoviz page`: write the page that takes people's own vectors, with playground and lessons, to one HTML file."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import isoviz.vectors
from isoviz import boundary
from isoviz.commands import dashboard
from isoviz.errors import InputError
from isoviz.lessons.reading import read
from isoviz.operations.operation import argument
from isoviz.vectors.embedded import embedded


def run(
    out: Annotated[str, argument("where to write the HTML file", "FILE")],
    embeddings: Annotated[
        str | None, argument("put these vectors into the page, which then opens on them", "FILE")
    ] = None,
    beside: Annotated[str | None, argument("a table with their labels, texts or ids", "FILE")] = None,
    without_texts: Annotated[bool, argument("leave the texts out of the page")] = False,
    add: Annotated[tuple[str, ...], argument("your own lessons for the page", "FILE")] = (),
) -> int:
    """Write the file, which opens on *Your vectors*."""
    if embeddings is None and (beside is not None or without_texts):
        name = "beside" if beside is not None else "without_texts"
        raise InputError(f"{name}: only with --embeddings", field=name)
    inside = None
    if embeddings is not None:
        found = isoviz.vectors.read(embeddings, beside=beside, field="embeddings")
        inside = embedded(found, texts=not without_texts, field="embeddings")
    return write(Path(out), add, start="vectors", vectors=inside)


def write(out: Path, add: Sequence[str], *, start: str, vectors: Mapping[str, Any] | None = None) -> int:
    """Write the file. A separate process prints it, because the engine does not import the dashboard, which has the parts."""
    dashboard.require("page", "one_page.py", package="jinja2")
    if not os.path.isdir(out.parent):  # unlike Path.is_dir, false for names that are too long
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    if os.path.isdir(out):
        raise InputError(f"out: '{out}' is a folder; name a file", field="out")
    for name in add:
        read(Path(name))
    request = {"start": start, "add": [str(Path(name).resolve()) for name in add], "vectors": vectors}
    rendering = dashboard.render("one_page", request=json.dumps(request).encode())
    if rendering.returncode:
        sys.stderr.write(rendering.stderr.decode(errors="replace"))
        return 1
    try:
        out.write_bytes(rendering.stdout)
    except OSError as error:
        raise InputError(f"out: '{out}' cannot be written to: {boundary.reason(error)}", field="out") from None
    if out.is_file():  # a device or a pipe is no file to open
        print(f"{out}: {len(rendering.stdout) / 1e6:.2f} MB; open it in any browser")
    return 0
