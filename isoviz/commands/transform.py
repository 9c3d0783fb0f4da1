"""`isoviz transform`: a chain of transforms, fitted on one array file and applied to another, block by block."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation, posthoc
from isoviz.commands.options import Column, file_of_vectors
from isoviz.commands.output import Answer, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import fixed
from isoviz.metrics.cloud import blocks
from isoviz.operations.operation import argument
from isoviz.operations.transform import TransformRequest, fit, rows_of_block
from isoviz.posthoc.protocol import Groups
from isoviz.tables import arrays


class TransformOptions(TransformRequest):
    """What to fit and where to write the result."""

    input: Annotated[str, argument(file_of_vectors(), "FILE", option="--in")]
    out: Annotated[str, argument("the transformed vectors, as .npy; float32 stays float32", "FILE")]
    column: Column = None


def run(request: TransformOptions) -> Answer:
    """Fit the chain, apply it and write the result."""
    out = request.out
    target = input_validation.path(out, "out")
    problem = ""
    if target.suffix != ".npy":
        problem = f"must end in .npy, got '{out}'"
    elif not target.parent.is_dir():
        problem = f"no folder '{target.parent}'"
    elif target.exists() and not target.is_file():
        problem = f"'{target}' is {'a directory' if target.is_dir() else 'not a regular file'}"
    if problem:
        raise InputError.at("out", f"{problem}")
    with progress_bar() as progress:
        fitted = fit(request, progress)
    shape, dtype = _write(fitted.transform, fitted.points, target.resolve(), fitted.codes)
    document = fitted.document | {"out": {"file": str(target), "n": shape[0], "d": shape[1], "dtype": dtype}}
    return Answer(document, _text(document, [step.title for step in fitted.steps]))


def _write(
    transform: posthoc.Chain, points: NDArray[Any], out: Path, groups: Groups | None
) -> tuple[tuple[int, int], str]:
    """Write the transformed points atomically, as float32 unless the input has a wider type."""
    dtype = np.dtype(np.float32 if points.dtype in (np.float16, np.float32) else np.float64)
    n = len(points)
    width = np.asarray(transform.transform(points[:0], None if groups is None else groups[:0])).shape[1]
    partial = out.with_name(f".isoviz-{os.getpid()}.npy.partial")
    try:
        image = partial.open("xb")
    except OSError as error:
        raise InputError.at("out", f"'{out.parent}' cannot be written to: {input_validation.reason(error)}") from None
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n, width)}
    try:
        # mapping the file would keep all of it in memory
        with image, progress_bar() as report:
            np.lib.format.write_array_header_1_0(image, header)
            for first, block in blocks(points, rows_of_block(points.shape[1])):
                last = first + len(block)
                try:
                    of_block = None if groups is None else groups[first:last]
                    np.asarray(transform.transform(block, of_block), dtype=dtype).tofile(image)
                except InputError as error:
                    arrays.check_finite(block, "in", before=first)  # the error gives the row
                    raise InputError.at("in", f"rows {first + 1} to {last}: {error}") from None
                report(last, n, "transforming")
        if out.exists():
            shutil.copymode(out, partial)
        partial.replace(out)
    finally:
        partial.unlink(missing_ok=True)
    return (n, width), dtype.name


def _text(document: dict[str, Any], titles: Sequence[str]) -> str:
    source, fitted, target = document["in"], document["fit_on"], document["out"]
    lines = [
        f"{' → '.join(titles) or 'no transform'}, fitted on {fitted['file']} (n = {fitted['n']:,})",
        f"{source['file']} (n = {source['n']:,}, d = {source['d']}) → {target['file']} (d = {target['d']}, {target['dtype']})",
    ]
    for counts in document["counts"]:
        reported = ", ".join(f"{name} {value}" for name, value in counts.items() if name != "transform" and value)
        lines += [f"  {counts['transform']}: {reported}"] if reported else []
    lines += [f"  {note}" for note in document["notes"]]
    kept = document["neighbours"]
    if kept["low"] is not None:
        ends = f"95 % interval {fixed(kept['low'], 3)} to {fixed(kept['high'], 3)}, n = {kept['n']:,}"
        lines.append(f"recall@10 of neighbours: {fixed(kept['recall10'], 3)} ({ends})")
    for part, verdict in document.get("search", {}).items():
        asked = "all questions" if part == "all" else "the questions that What-if holds back"
        lines.append(f"{asked}: {verdict['sentence']}")
    return "\n".join(lines)
