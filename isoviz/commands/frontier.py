"""`isoviz frontier`: how small vectors can be stored."""

from __future__ import annotations

from typing import Annotated

from pydantic import TypeAdapter

from isoviz.commands.options import Column, SkipBadRows, file_of_vectors
from isoviz.commands.output import Answer, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.operations.operation import argument
from isoviz.readouts.division import annotations_of, unanswered
from isoviz.readouts.frontier import MARGIN, MEASURES, Frontier, frontier
from isoviz.tables import arrays, catalogue, stores
from isoviz.vectors import reading


def run(
    embeddings: Annotated[str, argument(f"the {file_of_vectors()}", "FILE")],
    pairs: Annotated[
        str | None, argument("a table of query, document, relevance: judge on your questions", "FILE")
    ] = None,
    margin: Annotated[float, argument("largest loss that counts as harmless: 0.01 is one point of a hundred")] = MARGIN,
    column: Column = None,
    skip_bad_rows: SkipBadRows = False,
) -> Answer:
    """Compress in every way and measure what is lost. Without questions: which of each row's 10 nearest rows are kept."""
    vector_set, annotations = None, None
    with progress_bar() as progress, stores.reporting(progress):
        if pairs is None:
            points = reading.array(embeddings, column, "embeddings", skip_bad_rows)
            arrays.check_finite(points, "embeddings")
        else:
            columns = reading.Columns(points=column)
            vector_set = reading.read(embeddings, columns, relations=pairs, field="embeddings", skip_bad=skip_bad_rows)
            points, annotations = vector_set.points, annotations_of(vector_set)
            if annotations.queries is None:
                raise InputError.at("pairs", "expected columns query, document, relevance")
        try:
            found = frontier(points, annotations, margin, progress)
        except InputError as error:
            raise InputError(str(error).replace("vectors:", "embeddings:", 1), field=error.field) from None
    notes = () if vector_set is None else unanswered(vector_set)
    document = {"sentence": found.sentence, "smallest": found.smallest, **TypeAdapter(Frontier).dump_python(found)}
    return Answer(document, lambda: _print(catalogue.title(embeddings), found), notes)


def _print(name: str, found: Frontier) -> None:
    print(
        f"{name}: d = {found.d}, {len(found.ways)} ways to store a vector; no smaller one has a higher value than these:"
    )
    measures = [MEASURES[slug] for slug in found.judged]
    header = ("vectors", "bytes", "GB for ten million", *(f"{one}, change (95 %)" for one in measures))
    print_table(header, [one.cells(found.judged) for one in found.pareto])
    print(found.sentence)
    if found.smallest is not None:
        print(f"\n{found.smallest.python('...  # (n, d)')}")
