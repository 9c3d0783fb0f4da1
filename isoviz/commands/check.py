"""`isoviz check`: whether vectors changed, compared with a saved baseline."""

from __future__ import annotations

from typing import Annotated

from isoviz.commands.options import file_of_vectors
from isoviz.commands.output import Answer, print_slices, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import number
from isoviz.operations.check import CheckRequest, check
from isoviz.operations.operation import argument
from isoviz.tables import catalogue, stores
from isoviz.watch import drift


class CheckOptions(CheckRequest):
    """What to compare or to save."""

    vectors: Annotated[str, argument(file_of_vectors(), "FILE", positional=True)]
    baseline: Annotated[str | None, argument("compare with this baseline", "FILE")] = None  # type: ignore[assignment]
    save: Annotated[str | None, argument("save a baseline", "FILE")] = None
    strict: Annotated[bool, argument("fail also where a change cannot be excluded")] = False


def run(request: CheckOptions) -> Answer:
    """Save a baseline of a file of vectors, or compare the file with one: exit code 1 if a measure changed beyond its tolerance."""
    if (request.baseline is None) == (request.save is None):
        raise InputError("baseline: give either --baseline or --save", field="baseline")
    shown = catalogue.title(request.vectors)
    if request.save is None:
        with progress_bar() as progress:
            result = check(request, progress)
        code = 0 if result.ok(request.strict) else 1
        return Answer(result.model_dump(mode="json"), lambda: _print(shown, result), result.notes(), code)
    for name in ("fail_on", "same_rows", "by", "strict"):
        if getattr(request, name):
            raise InputError(f"{name}: only with --baseline", field=name)
    with progress_bar() as progress, stores.reporting(progress):
        how = request.ids, request.skip_bad_rows, request.pairs, request.queries
        points, names, searches, _ = drift.read(request.vectors, request.column, *how)
    made = drift.baseline(points, ids=names, searches=searches)
    made.write(request.save)
    document = made.model_dump(mode="json", exclude={"vectors", "ids", "searches"}) | {"rows": len(made.ids)}
    notes = drift.missing_notes(made.missing)
    return Answer(document, lambda: _print_baseline(f"{shown} → {request.save}", made), notes)


def _print_baseline(name: str, made: drift.Baseline) -> None:
    print(f"{name}: n = {made.n:,} rows, d = {made.d}; {len(made.ids):,} rows kept{', with ids' * made.named}")
    rows = [
        (slug, number(value), f"{number(low)} to {number(high)}") for slug, (value, low, high) in made.measures.items()
    ]
    print_table(("measure", "value", "95 % interval"), rows)


def _print(name: str, result: drift.Check) -> None:
    judged = sum(one.outcome != "not judged" for one in result.drifts)
    print(f"{name}: n = {result.n[1]:,} rows, d = {result.d}; baseline: n = {result.n[0]:,}")
    interval = f"{100 * result.level:g} % interval" + f" for all {judged}" * (judged > 1)
    header = ("measure", "", "before", "after", "change", interval, "tolerance")
    rows = []
    for one in result.drifts:
        values = [number(value) for value in (one.before, one.after, one.change)]
        rows.append((one.measure, one.outcome, *values, one.interval, number(one.tolerance)))
    print_table(header, rows)
    if result.rows == len(result.row_cosines):
        print_table(("row", "cosine"), [(name, number(cosine)) for name, cosine in result.row_cosines.items()])
    if result.slices:
        print_slices(result.slices)
    print(result.sentence)
