"""`isoviz compare`: which encoder ranks higher on a search, or do these runs differ?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from isoviz.commands.options import Column, StoreOption
from isoviz.commands.output import Answer, print_slices, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import decimals
from isoviz.operations.compare import CompareRequest, measure
from isoviz.operations.operation import Alpha, Baseline, ComparedMetric, argument, checked
from isoviz.readouts.encoders import QUALITIES, EncoderComparison, Ends
from isoviz.vectors.reading import names_file

if TYPE_CHECKING:
    from isoviz.runs.comparisons import Part, Table

_OF = CompareRequest.model_fields


def run(
    ids: Annotated[
        list[str],
        argument(
            "encoders: files of vectors, or models with --documents; the others are compared with the first. Or runs and experiments",
            "ENCODER",
            positional=True,
        ),
    ],
    documents: Annotated[str | None, argument(str(_OF["documents"].description), "FILE")] = None,
    queries: Annotated[tuple[str, ...], argument(str(_OF["queries"].description), "FILE")] = (),
    relevance: Annotated[str | None, argument(str(_OF["relevance"].description), "FILE")] = None,
    margin: Annotated[float, argument(str(_OF["margin"].description))] = 1.0,
    column: Column = None,
    by: Annotated[
        str | None,
        argument(
            "of encoders, slices of the questions: a column of their table, or length; of runs, the factor: method (with its "
            "parameters), a setting or a parameter (default: method)",
            "COLUMN",
        ),
    ] = None,
    metric: ComparedMetric = None,
    baseline: Baseline = None,
    alpha: Alpha = 0.05,
    store: StoreOption = None,
) -> Answer:
    """Compare encoders on documents, questions and relevance, or runs; exit code 0 whatever the result."""
    search = {"documents": documents, "queries": queries, "relevance": relevance, "column": column}
    if any(search.values()) or all(map(names_file, ids)):
        if metric is not None or baseline is not None:
            raise InputError.at("metric" if metric else "baseline", "only for runs, not for encoders")
        request = checked(CompareRequest, {"encoders": tuple(ids), "margin": margin, "by": by, **search})
        with progress_bar() as progress:
            found = measure(request, progress)
        return Answer(found.model_dump(mode="json"), lambda: _show_encoders(found), found.notes)
    from isoviz.operations.table import compare
    from isoviz.runs.store import Store

    table = compare(Store(store), ids, by=by or "method", metric=metric, baseline=baseline, alpha=alpha)
    return Answer(table.model_dump(mode="json"), lambda: show(table))


def _show_encoders(found: EncoderComparison) -> None:
    print(f"{found.questions:,} questions, {found.documents:,} documents")
    print_table(
        ("encoder", "d", *QUALITIES.values(), "noise floor, 99 %", "bytes", "ms per text"),
        [
            (
                one.name,
                str(one.d),
                *(_ends(one.quality.get(name)) for name in QUALITIES),
                _ends(one.noise_floor),
                f"{one.bytes:,}",
                "" if one.milliseconds is None else f"{one.milliseconds:.1f}",
            )
            for one in found.encoders
        ],
    )
    if found.slices:
        print_slices(found.slices)
    for difference in found.differences:
        print(f"\n{difference.sentence}")
        if difference.change:
            print(f"Questions: {difference.wins:,} rise, {difference.ties:,} stay, {difference.losses:,} fall.")
        for one in difference.worse:
            print(f"  {one.question}{'' if one.text is None else f': {one.text}'}")
            for name, value, hits in (
                (found.encoders[0].name, one.before, one.hits_before),
                (difference.name, one.after, one.hits_after),
            ):
                shown = ", ".join(f"{hit.document} {decimals(hit.cosine)}{' ✓' * hit.relevant}" for hit in hits)
                print(f"    {name}: nDCG@10 {decimals(value)}; {shown}")


def _ends(ends: Ends | None) -> str:
    return "" if ends is None else f"{decimals(ends[0])} ({decimals(ends[1])} to {decimals(ends[2])})"


def show(table: Table) -> None:
    """The table of runs as text."""
    for part in table.parts:
        _show(part, table)
    if table.tests > 1:
        print(f"\nHolm's correction is for {table.tests} comparisons; intervals are for one.")


def _show(part: Part, table: Table) -> None:
    from isoviz.runs.comparisons import wording

    print(f"\n{part.model} on {part.task}: {part.metric}")
    for warning in part.warnings:
        print(f"warning: {warning}")
    header = [table.by, "n", "mean ± sd", "95 % interval", "median", "each seed"]
    rows = []
    for arm in part.arms:
        spread = f" ± {wording.number(arm.sd, scale=part.scale)}" if arm.sd is not None else ""
        mean, low, high, median = (
            wording.number(x, scale=part.scale) for x in (arm.mean, arm.low, arm.high, arm.median)
        )
        interval = f"[{low}, {high}]" if arm.low is not None else ""
        seeds = "  ".join(f"{seed}: {wording.number(value, scale=part.scale)}" for seed, value in arm.values.items())
        rows.append([arm.label, str(arm.n), f"{mean}{spread}", interval, median, seeds])
    print_table(header, rows)
    for comparison in part.comparisons:
        print(comparison.sentence)
    for arm in part.arms:
        for one in arm.excluded:
            print(f"excluded: {one.run}, {arm.label}, seed {one.seed}: {one.reason}")
        if arm.repeats:
            print(
                f"excluded: {arm.repeats} older run{'s' if arm.repeats > 1 else ''} of {arm.label} with a seed that ran again"
            )
    for note in part.notes:
        print(f"note: {note}")
