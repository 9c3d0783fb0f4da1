"""`isoviz ruler`: what a cosine means for an encoder."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from isoviz import input_validation
from isoviz.commands.output import Answer, print_slices, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.formatting import fixed
from isoviz.operations.operation import argument
from isoviz.operations.ruler import Measured, RulerRequest, measure
from isoviz.readouts import ruler as rulers


class RulerOptions(RulerRequest):
    """What to measure a ruler on, and where to keep it."""

    out: Annotated[str | None, argument("keep the ruler as JSON", "FILE")] = None


def run(request: RulerOptions) -> Answer:
    """Measure the ruler of a file of embeddings or of a model on texts, and read cosines on it."""
    target = None if request.out is None else input_validation.path(request.out, "out")
    if target is not None and not target.parent.is_dir():
        raise InputError(f"out: no folder '{target.parent}'", field="out")
    with progress_bar() as progress:
        measured = measure(request, progress)
    if target is not None:
        target.write_text(measured.ruler.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return Answer(measured.document, lambda: _print(measured, request.out), measured.notes)


def _print(measured: Measured, out: str | None) -> None:
    ruler = measured.ruler
    print(
        f"{measured.name}: n = {ruler.n} points, d = {ruler.d}; {ruler.compared:,} unrelated pairs ({ruler.protocol})"
    )
    if ruler.alike:
        print(ruler.alike)
    if (hits := ruler.hits) is not None:
        print(f"\nIs the best hit right? {hits.advice}")
        at = [(one, *hits.read(one)) for one in np.linspace(hits.cosine[0], hits.cosine[-1], 5)]
        table = [(fixed(one, 3), f"{value:.2f}", f"{low:.2f} to {high:.2f}") for one, value, low, high in at]
        print_table(("cosine of the best hit", "P(relevant)", "95 % interval"), table)
        print()
    rows = [
        (f"{100 * one.share:g} %", f"{fixed(one.cosine, 4)}", f"{fixed(one.low, 4)} to {fixed(one.high, 4)}")
        for one in ruler.floor
    ]
    print_table(("unrelated pairs below", "cosine", "95 % interval"), rows)
    if (related := ruler.related) is not None:
        print(f"\n{related.pairs:,} related pairs: {ruler.relation}.\n{related.certainty}\n{related.advice}")
    print("\nThe same after a transform (rescaling a score changes no ranking; centring and whitening do):")
    variants = []
    for one in ruler.variants:
        gain = "" if one.gain is None else f"{one.gain[0]:+.4f} ({one.gain[1]:+.4f} to {one.gain[2]:+.4f})"
        variants.append((one.name, fixed(one.noise_floor, 4), "" if one.auc is None else fixed(one.auc, 4), gain))
    print_table(("", "99 % of unrelated pairs below", "AUC", "gain, 95 % interval"), variants)
    if measured.slices:
        print_slices(measured.slices)
    if measured.near is not None:
        print(measured.near.sentence(measured.asked))
    for reading in measured.readings:
        print(reading.sentence)
    if out is not None:
        print(f"written: {out}; these lines read it:\n\n{rulers.SIX_LINES}")
