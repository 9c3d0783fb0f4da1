"""`isoviz page`: write the page that takes people's own vectors, with playground and lessons, to one HTML file."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import isoviz.vectors
from isoviz import input_validation
from isoviz.commands import dashboard
from isoviz.commands.options import Column
from isoviz.errors import InputError
from isoviz.lessons.reading import read
from isoviz.operations.operation import argument
from isoviz.tables import arrays, catalogue
from isoviz.vectors import Columns, reading
from isoviz.vectors.embedded import embedded, embedded_points


def run(
    out: Annotated[
        str | None,
        argument("where to write the HTML file (default: beside you, named like the vectors, and open it)", "FILE"),
    ] = None,
    embeddings: Annotated[
        str | None, argument("put these vectors into the page, which then opens on them", "FILE")
    ] = None,
    beside: Annotated[str | None, argument("a table with their labels, texts or ids", "FILE")] = None,
    column: Column = None,
    label_column: Annotated[str | None, argument("column of their labels, if it is not 'label'", "NAME")] = None,
    without_texts: Annotated[bool, argument("leave the texts out of the page")] = False,
    add: Annotated[tuple[str, ...], argument("your own lessons for the page", "FILE")] = (),
    no_browser: Annotated[bool, argument("do not open the page")] = False,
) -> int:
    """Write the file, which opens on *Your vectors*. Vectors that are too many for a page are sampled, with seed 0."""
    of_file = {"beside": beside, "column": column, "label_column": label_column, "without_texts": without_texts}
    for name, value in of_file.items():
        if value and embeddings is None:
            raise InputError(f"{name}: only with --embeddings", field=name)
    inside = None
    if embeddings is not None:
        inside = _inside(embeddings, Columns(points=column, label=label_column), beside, not without_texts)
    file = Path(out or f"{Path(embeddings or 'page').name.partition('.')[0]}.isoviz.html")
    code = write(file, add, start="vectors", vectors=inside)
    if out is None and not code and not no_browser:
        webbrowser.open(file.absolute().as_uri())
    return code


def _inside(file: str, columns: Columns, beside: str | None, texts: bool) -> dict[str, Any]:
    """The vectors as the page holds them. A file of nothing but an array is read without pandas, which the core lacks."""
    if columns.label and beside is None and reading.holds(file, "embeddings", reading.VECTORS) == "array":
        raise InputError.at("label_column", "an array file has no columns; name a table with --beside")
    if find_spec("pandas") is None and beside is None:
        points, _ = reading.named_array(file, columns.points, "embeddings")
        arrays.check_finite(points, "embeddings")
        return embedded_points(points, catalogue.title(file), {}, field="embeddings", sample=True)
    found = isoviz.vectors.read(file, columns, beside=beside, field="embeddings", beside_field="beside")
    return embedded(found, texts=texts, field="embeddings", sample=True)


def write(out: Path, add: Sequence[str], *, start: str, vectors: Mapping[str, Any] | None = None) -> int:
    """Write the file. The dashboard, which has the parts, is imported only here."""
    if not os.path.isdir(out.parent):  # unlike Path.is_dir, false for names that are too long
        raise InputError(f"out: there is no folder '{out.parent}'", field="out")
    lessons = [read(Path(name)) for name in add]
    page = dashboard.module("export.standalone").render(lessons, start=start, vectors=vectors)
    try:
        out.write_bytes(page.encode())
    except OSError as error:
        raise InputError(f"out: '{out}' cannot be written to: {input_validation.reason(error)}", field="out") from None
    if out.is_file():  # a device or a pipe is no file to open
        print(f"{out}: {len(page.encode()) / 1e6:.2f} MB; open it in any browser")
    return 0
