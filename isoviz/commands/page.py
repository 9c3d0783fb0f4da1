"""`isoviz page`: write the page that takes people's own vectors, with playground and lessons, to one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import isoviz.vectors
from isoviz.commands import dashboard
from isoviz.commands.options import Column
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
    column: Column = None,
    label_column: Annotated[str | None, argument("column of their labels, if it is not 'label'", "NAME")] = None,
    without_texts: Annotated[bool, argument("leave the texts out of the page")] = False,
    add: Annotated[tuple[str, ...], argument("your own lessons for the page", "FILE")] = (),
) -> int:
    """Write the file, which opens on *Your vectors*."""
    of_file = {"beside": beside, "column": column, "label_column": label_column, "without_texts": without_texts}
    for name, value in of_file.items():
        if value and embeddings is None:
            raise InputError(f"{name}: only with --embeddings", field=name)
    inside = None
    if embeddings is not None:
        columns = isoviz.vectors.Columns(points=column, label=label_column)
        found = isoviz.vectors.read(embeddings, columns, beside=beside, field="embeddings", beside_field="beside")
        inside = embedded(found, texts=not without_texts, field="embeddings")
    return write(Path(out), add, start="vectors", vectors=inside)


def write(out: Path, add: Sequence[str], *, start: str, vectors: Mapping[str, Any] | None = None) -> int:
    """Write the file. A separate process prints it, because the engine does not import the dashboard, which has the parts."""
    dashboard.require("page", package="jinja2")
    dashboard.check_file(out)
    for name in add:
        read(Path(name))
    request = {"start": start, "add": [str(Path(name).resolve()) for name in add], "vectors": vectors}
    return dashboard.save(dashboard.render("export.standalone", request=json.dumps(request).encode()), out)
