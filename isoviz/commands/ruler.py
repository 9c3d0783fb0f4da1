"""`isoviz ruler`: what a cosine means for an encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary, cosines
from isoviz.commands.output import Answer, print_table
from isoviz.errors import InputError
from isoviz.operations.measure import MeasureRequest, points_in
from isoviz.operations.operation import argument


def run(
    embeddings: Annotated[
        str, argument("vectors: .npy, .npz, .safetensors, .parquet, .arrow, .csv, .tsv, .jsonl", "FILE")
    ],
    column: Annotated[str | None, argument("the vectors in the file, as for measure", "NAME")] = None,
    labels: Annotated[
        str | None,
        argument("column of labels, or a table with a column 'label': rows with the same one are related", "NAME"),
    ] = None,
    pairs: Annotated[str | None, argument("scored pairs of ids, or relevance of documents to queries", "FILE")] = None,
    related_from: Annotated[
        float | None, argument("scored pairs with at least this score are related (default: 0.8 of the highest)", "X")
    ] = None,
    share: Annotated[float, argument("of the pairs that you will compare, how many are related", "X")] = 0.5,
    precision: Annotated[float, argument("wanted of a threshold", "X")] = 0.9,
    cosine: Annotated[list[float] | None, argument("cosines to read on the ruler", "X")] = None,
    model: Annotated[str | None, argument("name of the encoder, for the record")] = None,
    out: Annotated[str | None, argument("keep the ruler as JSON", "FILE")] = None,
) -> Answer:
    """Measure the ruler of a file of embeddings, and read cosines on it."""
    for name, value in (("labels", labels), ("pairs", pairs), ("column", column)):
        if value == "":
            raise InputError(f"{name}: is empty", field=name)
    target = None if out is None else boundary.path(out, "out")
    if target is not None and not target.parent.is_dir():
        raise InputError(f"out: no folder '{target.parent}'", field="out")
    if labels is not None and pairs is not None:
        raise InputError("pairs: give pairs or labels, not both", field="pairs")
    request = MeasureRequest.model_validate(
        {"embeddings": embeddings, "column": column, "labels": labels, "pairs": pairs}
    )
    points, _, vector_set = points_in(request, embeddings)
    related: NDArray[np.int64] | None = None
    groups = None
    if vector_set is not None:
        from isoviz.readouts.division import annotations_of

        found = annotations_of(vector_set)
        if labels is not None and found.labels is not None:
            groups = found.labels.codes.tolist()
        elif found.pairs is not None:
            least = 0.8 * found.pairs.score.max() if related_from is None else related_from
            enough = found.pairs.score >= least
            related = np.stack([found.pairs.left[enough], found.pairs.right[enough]], axis=1)
        elif found.queries is not None:
            good = found.queries.grade > 0
            left = found.queries.queries[found.queries.query[good]]
            related = np.stack([left, found.queries.documents[found.queries.document[good]]], axis=1)
    made = cosines.ruler(points, pairs=related, labels=groups, share=share, precision=precision, model=model)
    readings = [made.read(value) for value in cosine or ()]
    if target is not None:
        target.write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
    document = made.model_dump(mode="json") | {"readings": [reading.model_dump() for reading in readings]}
    return Answer(document, lambda: _print(Path(embeddings).name, made, readings, out))


def _print(name: str, ruler: cosines.Ruler, readings: list[cosines.Reading], out: str | None) -> None:
    print(f"{name}: n = {ruler.n} points, d = {ruler.d}; {ruler.compared:,} unrelated pairs ({ruler.protocol})")
    rows = [(f"{100 * one.share:g} %", f"{one.cosine:.4f}", f"{one.low:.4f} to {one.high:.4f}") for one in ruler.floor]
    print_table(("unrelated pairs below", "cosine", "95 % interval"), rows)
    if (related := ruler.related) is not None:
        auc, low, high = related.auc
        print(
            f"\n{related.pairs:,} related pairs: higher than an unrelated one with probability {auc:.3f} ({low:.3f} to {high:.3f})"
        )
        if not related.separates:
            print(f"No threshold separates these (p = {related.p:.2g}).")
        else:
            error, low, high = related.error
            print(
                f"P(related | cosine) is off by {error:.3f} on average ({low:.3f} to {high:.3f}), on rows that did not fit it."
            )
            print(_threshold(related))
    print("\nThe same after a transform (rescaling a score changes no ranking; centring and whitening do):")
    print_table(
        ("", "99 % of unrelated pairs below", "AUC", "gain, 95 % interval"), [_variant(one) for one in ruler.variants]
    )
    for reading in readings:
        print(reading.sentence)
    if out is not None:
        print(f"written: {out}; these lines read it:\n\n{cosines.SIX_LINES}")


def _threshold(related: cosines.Related) -> str:
    if (found := related.threshold) is None:
        return (
            f"No cosine has a precision of {related.wanted:g}, if {100 * related.share:g} % of the pairs are related."
        )
    precision = f"{found.precision:.3f} ({found.low:.3f} to {found.high:.3f})"
    return (
        f"Above {found.cosine:.4f}, a share of {precision} is related if {100 * related.share:g} % of all pairs are; "
        f"{100 * found.recall:.0f} % of the related pairs lie there."
    )


def _variant(variant: cosines.Variant) -> tuple[str, str, str, str]:
    gain = "" if variant.gain is None else f"{variant.gain[0]:+.4f} ({variant.gain[1]:+.4f} to {variant.gain[2]:+.4f})"
    return variant.name, f"{variant.noise_floor:.4f}", "" if variant.auc is None else f"{variant.auc:.4f}", gain
