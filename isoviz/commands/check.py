"""`isoviz check`: whether vectors changed, compared with a saved baseline."""

from __future__ import annotations

from typing import Annotated

from isoviz import drift, input_validation
from isoviz.commands.options import Column, SkipBadRows, file_of_vectors
from isoviz.commands.output import Answer, print_slices, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import number
from isoviz.operations.operation import argument
from isoviz.tables import catalogue, stores


def run(
    vectors: Annotated[
        str,
        argument(file_of_vectors(), "FILE", positional=True),
    ],
    baseline: Annotated[str | None, argument("compare with this baseline", "FILE")] = None,
    save: Annotated[str | None, argument("save a baseline", "FILE")] = None,
    fail_on: Annotated[
        list[str] | None,
        argument(f"judge only these, with these tolerances: {', '.join(drift.MEASURES)}", "MEASURE[=TOLERANCE]"),
    ] = None,
    column: Column = None,
    ids: Annotated[str | None, argument("column of ids, by which rows are paired (default: id, if present)")] = None,
    same_rows: Annotated[bool, argument("pair rows by number: row k is the same text in both files")] = False,
    pairs: Annotated[str | None, argument("a table of query, document, relevance: judge search, too", "FILE")] = None,
    by: Annotated[
        str | None,
        argument("also by slice: a column, or length (quartiles of the length of its texts)", "COLUMN|length"),
    ] = None,
    strict: Annotated[bool, argument("fail also where a change cannot be excluded")] = False,
    skip_bad_rows: SkipBadRows = False,
) -> Answer:
    """Save a baseline of a file of vectors, or compare the file with one: exit code 1 if a measure changed beyond its tolerance."""
    if (baseline is None) == (save is None):
        raise InputError("baseline: give either --baseline or --save", field="baseline")
    for name, value in {"fail_on": fail_on, "same_rows": same_rows, "by": by, "strict": strict}.items():
        if value and save is not None:
            raise InputError(f"{name}: only with --baseline", field=name)
    tolerances = None if fail_on is None else dict(map(assignment, fail_on))
    before = None if baseline is None else drift.Baseline.read(baseline)
    shown = catalogue.title(vectors)
    with progress_bar() as progress, stores.reporting(progress):
        points, names, searches, slicing = drift.read(vectors, column, ids, skip_bad_rows, pairs, by)
    if before is None:
        made = drift.baseline(points, ids=names, searches=searches)
        made.write(str(save))
        document = made.model_dump(mode="json", exclude={"vectors", "ids", "searches"}) | {"rows": len(made.ids)}
        notes = drift.missing_notes(made.missing)
        return Answer(document, lambda: _print_baseline(f"{shown} → {save}", made), notes)
    if ids is None and (same_rows or not before.common(names or ())):
        names = None  # no ids, or a column 'id' that nobody asked for
    result = drift.check(
        points, before, fail_on=tolerances, ids=names, same_rows=same_rows, searches=searches, slicing=slicing
    )
    code = 0 if result.ok(strict) else 1
    return Answer(result.model_dump(mode="json"), lambda: _print(shown, result), result.notes(), code)


def assignment(text: str, field: str = "fail_on") -> tuple[str, float | None]:
    """NAME or NAME=NUMBER."""
    name, equals, value = text.partition("=")
    try:
        return name, input_validation.number(value) if equals else None
    except ValueError as error:
        raise InputError.at(field, str(error)) from None


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
