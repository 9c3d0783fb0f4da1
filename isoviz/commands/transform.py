"""`isoviz transform`: a chain of transforms, fitted on one array file and applied to another, block by block."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation, posthoc
from isoviz.commands.options import Column, SkipBadRows, file_of_vectors
from isoviz.commands.output import Answer, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import fixed, sentence
from isoviz.metrics.cloud import blocks, draw, resolution
from isoviz.metrics.directions import indistinct, mean_cosine_estimate
from isoviz.metrics.moments import WHITENED
from isoviz.metrics.sample import Sample
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.profile import STREAM_ABOVE
from isoviz.operations.operation import argument
from isoviz.posthoc.groups import Groups
from isoviz.readouts import cosines
from isoviz.readouts.comparable import comparable_rows
from isoviz.readouts.image import MOST_PAIRED, Image
from isoviz.statistics.paired_bootstrap import Difference, interval
from isoviz.tables import arrays, stores
from isoviz.vectors import reading

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.whatif.chains import Step

BLOCK = 12 * 2**20
"""Size of a block in float64, in bytes."""


def run(
    chain: Annotated[
        str, argument("as What-if writes it: all_but_the_top:remove=2~isobn:beta=0.5", "CHAIN", option="--chain")
    ],
    input: Annotated[
        str,
        argument(file_of_vectors(), "FILE", option="--in"),
    ],
    out: Annotated[str, argument("the transformed vectors, as .npy; float32 stays float32", "FILE")],
    fit_on: Annotated[str | None, argument("the vectors to fit the transforms on (default: --in)", "FILE")] = None,
    groups: Annotated[
        str | None, argument("for language_removal: the column of --in and --fit-on with each row's language", "COLUMN")
    ] = None,
    column: Column = None,
    skip_bad_rows: SkipBadRows = False,
) -> Answer:
    """Fit the chain, apply it and write the result."""
    from isoviz.whatif import chains

    try:
        steps = chains.read_for_vectors(chain)
    except InputError as error:
        raise InputError.at("chain", f"{str(error).removeprefix('chain: ')}") from None
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
    transform = posthoc.chain([step.make() for step in steps])
    if (groups is None) == (transform.needs == "groups"):
        needed = "only for language_removal" if groups else f"{chain} needs the column with each row's language"
        raise InputError.at("groups", f"{needed}")
    with progress_bar() as progress, stores.reporting(progress):
        points, names = _read(input, "in", column, groups, skip_bad_rows)
        fitted, fitted_names = points, names
        if fit_on is not None:
            fitted, fitted_names = _read(fit_on, "fit-on", column, groups, skip_bad_rows)
    input, fit_on = stores.title(input), None if fit_on is None else stores.title(fit_on)  # without passwords
    if fitted.shape[1] != points.shape[1]:
        raise InputError.at("fit-on", f"'{fit_on}' has {fitted.shape[1]} dimensions, '{input}' has {points.shape[1]}")
    codes, fitted_codes = _codes(names, fitted_names)
    try:
        _fit(transform, fitted, fitted_codes)
    except InputError as error:
        arrays.check_finite(fitted, "in" if fit_on is None else "fit-on")
        raise InputError.at("chain", f"cannot be fitted on these points: {error}") from None
    rows = draw(len(points), MOST_PAIRED)
    some = np.asarray(points[rows]), None if codes is None else codes[rows]
    kept = _neighbours(transform, *some)
    shape, dtype = _write(transform, points, target.resolve(), codes)
    document = {
        "chain": chains.write(steps),
        "in": {"file": input, "n": points.shape[0], "d": points.shape[1]},
        "fit_on": {"file": fit_on or input, "n": fitted.shape[0]},
        "out": {"file": str(target), "n": shape[0], "d": shape[1], "dtype": dtype},
        "counts": [{"transform": step.slug, **transform_step.state()["spec"]["counts"]} for step, transform_step in
                   zip(steps, transform.steps, strict=True)],
        "notes": _notes(steps, transform, some[0], fit_on is None or Path(fit_on).resolve() == Path(input).resolve()),
        "affine": transform.affine() is not None,
        "neighbours": {"recall10": kept.value, "low": kept.low, "high": kept.high, "n": kept.n},
    }  # fmt: skip
    return Answer(document, _text(document, [step.title for step in steps]))


def _notes(steps: Sequence[Step], transform: posthoc.Chain, points: NDArray[Any], same_rows: bool) -> list[str]:
    """What the steps dropped or could not do, and what cannot be measured or judged on these points."""
    fitted = [step.learnt.notes for step in transform.steps if isinstance(step, posthoc.CataloguedTransform)]
    notes = [f"{step.title}: {note}" for step, own in zip(steps, fitted, strict=True) for note in own]
    if same_rows and any(getattr(step.params, "strength", 0) for step in steps):
        notes.append(f"IsoScore, unbiased, is undefined for these vectors: {WHITENED}")
    if steps and (alike := indistinct(mean_cosine_estimate(Sample(points)).value)):
        notes.append(f"before the transforms, {alike}")
    return [sentence(note) for note in notes]


def _fit(transform: posthoc.Chain, points: NDArray[Any], groups: Groups | None) -> None:
    """Fit on all points; a large file in one pass, if the chain needs only mean and covariance."""
    n, d = points.shape
    if points.size * 8 <= STREAM_ABOVE or transform.fits_on == "points" or n < d:
        transform.fit(points, groups)
        return
    sums = CovarianceAccumulator(d)
    with progress_bar() as report:
        for start, block in blocks(points, _rows(d)):
            sums.update(block)
            report(start + len(block), n, "fitting")
    transform.fit_sums(np.asarray(sums.mean), np.asarray(sums.covariance), n, resolution(points))


def _rows(d: int) -> int:
    """Number of rows in a block."""
    return max(1, BLOCK // (8 * d))


def _neighbours(transform: posthoc.Chain, points: NDArray[Any], groups: Groups | None) -> Difference:
    """Recall@10 of the points' neighbours after the transform, with its interval."""
    try:
        after = transform.transform(points, groups)
    except InputError:  # `_write` names the row
        return Difference(None, None, None, len(points), 0)
    rows, _ = comparable_rows(points)
    return interval(cosines.overlap(Image(points[rows]), Image(np.asarray(after)[rows])))


def _codes(*names: pd.Series | None) -> list[Groups | None]:
    """The groups of each file as codes that all files share, −1 where there is none."""
    if any(one is None for one in names):
        return [None] * len(names)
    import pandas as pd

    codes = pd.factorize(pd.concat(names))[0]
    ends = np.cumsum([len(one) for one in names if one is not None])[:-1]
    return list(np.split(codes.astype(np.int64), ends))


def _read(
    name: str, option: str, column: str | None, groups: str | None, skip: bool
) -> tuple[NDArray[Any], pd.Series | None]:
    """The vectors, and each row's group if a column is named."""
    if stores.is_store(name):
        name = stores.with_options(name, sample="all")
    if groups is not None:
        from isoviz import vectors

        of_file = vectors.read(name, vectors.Columns(points=column, label=groups), field=option, skip_bad=skip)
        if "label" not in of_file.columns:
            raise InputError.at("groups", f"'{name}' has no columns; name a table")
        return of_file.points, of_file.columns["label"]
    points = reading.array(name, column, option, skip)
    if not (np.issubdtype(points.dtype, np.floating) or np.issubdtype(points.dtype, np.integer)):
        raise InputError(f"{option}: '{name}' holds {points.dtype}, not numbers", field=option)
    return points, None


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
            for first, block in blocks(points, _rows(points.shape[1])):
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
    return "\n".join(lines)
