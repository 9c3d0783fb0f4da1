"""A chain of transforms fitted on vectors: what it does to others, to their neighbours, and to a search over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.formatting import sentence
from isoviz.metrics.cloud import blocks, draw, resolution
from isoviz.metrics.copies import comparable_rows
from isoviz.metrics.directions import indistinct, mean_cosine_estimate
from isoviz.metrics.moments import WHITENED
from isoviz.metrics.sample import Sample
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.profile import STREAM_ABOVE
from isoviz.operations.compare import naming_relevance
from isoviz.operations.measure import Progress, noting
from isoviz.operations.operation import STRICT, argument
from isoviz.posthoc.protocol import Groups
from isoviz.readouts import cosines, encoders
from isoviz.readouts.division import divide
from isoviz.readouts.image import MOST_PAIRED, Image
from isoviz.statistics.paired_bootstrap import Difference, interval
from isoviz.tables import arrays, stores
from isoviz.vectors import reading
from isoviz.vectors.sets import VectorSet

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.whatif.chains import Step

BLOCK = 12 * 2**20
"""Size of a block in float64, in bytes."""


class TransformRequest(BaseModel):
    """A chain, the vectors to fit it on, and those to apply it to."""

    model_config = STRICT

    chain: Annotated[str, argument("as What-if writes it: all_but_the_top:remove=2~isobn:beta=0.5", "CHAIN")]
    input: Annotated[str, argument("the vectors", "FILE", option="--in")]
    fit_on: Annotated[str | None, argument("the vectors to fit the transforms on (default: --in)", "FILE")] = None
    groups: Annotated[
        str | None, argument("for language_removal: the column of --in and --fit-on with each row's language", "COLUMN")
    ] = None
    column: Annotated[str | None, argument("the vectors in the files, if they have several columns")] = None
    skip_bad_rows: Annotated[bool, argument("leave out rows of the file without a readable vector")] = False
    queries: Annotated[
        str | None,
        argument("the questions' vectors, if they are in a file of their own: what does search gain?", "FILE"),
    ] = None
    relevance: Annotated[
        str | None, argument("a table of query, document and relevance, or a folder with qrels", "FILE")
    ] = None


@dataclass(frozen=True)
class Fitted:
    """A fitted chain, the points (n, d) to apply it to, their groups as codes, and the document."""

    steps: Sequence[Step]
    transform: posthoc.Chain
    points: NDArray[Any]
    codes: Groups | None
    document: dict[str, Any]


def fit(request: TransformRequest, progress: Progress = lambda *_: None) -> Fitted:
    """Read the vectors, fit the chain and judge it.

    Raises:
        InputError: the chain, a file or the questions cannot be used; fields are those of the request.
    """
    from isoviz.whatif import chains

    chain, input, fit_on, groups = request.chain, request.input, request.fit_on, request.groups
    column, skip_bad_rows = request.column, request.skip_bad_rows
    if request.queries is not None and request.relevance is None:
        raise InputError.at("relevance", "questions need relevance: a table of query, document and relevance")
    if request.relevance is not None and groups is not None:
        raise InputError.at("relevance", "not with groups: questions have none")
    try:
        steps = chains.read_for_vectors(chain)
    except InputError as error:
        raise InputError.at("chain", f"{str(error).removeprefix('chain: ')}") from None
    transform = posthoc.chain([step.make() for step in steps])
    if (groups is None) == (transform.needs == "groups"):
        needed = "only for language_removal" if groups else f"{chain} needs the column with each row's language"
        raise InputError.at("groups", f"{needed}")
    with stores.reporting(progress):
        points, names = _read(input, "in", column, groups, skip_bad_rows)
        fitted, fitted_names = points, names
        if fit_on is not None:
            fitted, fitted_names = _read(fit_on, "fit-on", column, groups, skip_bad_rows)
    input, fit_on = stores.title(input), None if fit_on is None else stores.title(fit_on)  # without passwords
    if fitted.shape[1] != points.shape[1]:
        raise InputError.at("fit-on", f"'{fit_on}' has {fitted.shape[1]} dimensions, '{input}' has {points.shape[1]}")
    codes, fitted_codes = _codes(names, fitted_names)
    try:
        _fit(transform, fitted, fitted_codes, progress)
    except InputError as error:
        arrays.check_finite(fitted, "in" if fit_on is None else "fit-on")
        raise InputError.at("chain", f"cannot be fitted on these points: {error}") from None
    rows = draw(len(points), MOST_PAIRED)
    some = np.asarray(points[rows]), None if codes is None else codes[rows]
    kept = _neighbours(transform, *some)
    same = fit_on is None or Path(fit_on).resolve() == Path(input).resolve()
    try:
        notes = _notes(steps, transform, some[0], same)
    except InputError:
        arrays.check_finite(points, "in")  # the error gives the row
        raise
    document = {
        "chain": chains.write(steps),
        "in": {"file": input, "n": points.shape[0], "d": points.shape[1]},
        "fit_on": {"file": fit_on or input, "n": fitted.shape[0]},
        "counts": [{"transform": step.slug, **cast(Any, fitted_step).learnt.counts} for step, fitted_step in
                   zip(steps, transform.steps, strict=True)],
        "notes": notes,
        "affine": transform.affine() is not None,
        "neighbours": {"recall10": kept.value, "low": kept.low, "high": kept.high, "n": kept.n},
    }  # fmt: skip
    search = {} if request.relevance is None else {"search": _search(request, transform)}
    return Fitted(steps, transform, points, codes, document | search)


def document(request: TransformRequest) -> dict[str, Any]:
    """The document, without the transformed vectors, in a process of its own (`isoviz.jobs.guarded`)."""
    with noting() as notes:
        found = fit(request).document
    return {**found, "warnings": [*found["notes"], *notes]}


def _search(request: TransformRequest, transform: posthoc.Chain) -> dict[str, Any]:
    """The verdict on search with the chain against without, on all questions, and on those that What-if holds back."""
    columns, files = reading.Columns(points=request.column), (request.queries, request.relevance)
    with naming_relevance():
        plain = reading.read(
            request.input, columns, questions=files[0], relations=files[1], field="in", skip_bad=request.skip_bad_rows
        )
    if plain.relation != "relevance" or plain.pairs is None:
        raise InputError.at("relevance", "expected columns query, document, relevance")
    parts = {"all": plain}
    try:
        held = divide(plain, "held back")
        asked = held.annotations.queries
        if asked is not None:
            names = plain.columns["id"].iloc[held.rows[asked.queries]]
            parts["held_back"] = replace(plain, pairs=plain.pairs[plain.pairs["left"].isin(names)])
    except InputError:
        pass  # too few questions to divide
    return {part: _verdict(one, request.chain, transform) for part, one in parts.items()}


def _verdict(plain: VectorSet, chain: str, transform: posthoc.Chain) -> dict[str, Any]:
    after = replace(plain, points=np.asarray(transform.transform(plain.points)))
    found = encoders.of_sets({plain.name: plain, chain: after})
    one = found.differences[0]
    change = dict(zip(("value", "low", "high"), one.change["ndcg10"], strict=True))
    return {"sentence": one.sentence, "outcome": one.outcome, "questions": found.questions, "ndcg10_change": change}


def _notes(steps: Sequence[Step], transform: posthoc.Chain, points: NDArray[Any], same_rows: bool) -> list[str]:
    """What the steps dropped or could not do, and what cannot be measured or judged on these points."""
    fitted = [step.learnt.notes for step in transform.steps if isinstance(step, posthoc.CataloguedTransform)]
    notes = [f"{step.title}: {note}" for step, own in zip(steps, fitted, strict=True) for note in own]
    if same_rows and any(getattr(step.params, "strength", 0) for step in steps):
        notes.append(f"IsoScore, unbiased, is undefined for these vectors: {WHITENED}")
    if steps and (alike := indistinct(mean_cosine_estimate(Sample(points)).value)):
        notes.append(f"before the transforms, {alike}")
    return [sentence(note) for note in notes]


def _fit(transform: posthoc.Chain, points: NDArray[Any], groups: Groups | None, progress: Progress) -> None:
    """Fit on all points; a large file in one pass, if the chain needs only mean and covariance."""
    n, d = points.shape
    if points.size * 8 <= STREAM_ABOVE or transform.fits_on == "points" or n < d:
        transform.fit(points, groups)
        return
    sums = CovarianceAccumulator(d)
    for start, block in blocks(points, rows_of_block(d)):
        sums.update(block)
        progress(start + len(block), n, "fitting")
    transform.fit_sums(np.asarray(sums.mean), np.asarray(sums.covariance), n, resolution(points))


def rows_of_block(d: int) -> int:
    """Number of rows in a block."""
    return max(1, BLOCK // (8 * d))


def _neighbours(transform: posthoc.Chain, points: NDArray[Any], groups: Groups | None) -> Difference:
    """Recall@10 of the points' neighbours after the transform, with its interval."""
    try:
        after = transform.transform(points, groups)
    except InputError:  # `_write` names the row
        return Difference(None, None, None, len(points))
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
