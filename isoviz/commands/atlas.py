"""`isoviz atlas`: record many encoders on corpora of related pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from isoviz import input_validation
from isoviz.atlas import Record, record, records
from isoviz.atlas.corpora import EVERYDAY
from isoviz.atlas.corpora import read as read_corpus
from isoviz.commands.output import Answer, print_table, progress_bar
from isoviz.errors import InputError
from isoviz.operations.operation import argument

_COLUMNS: Final = ("model", "name", "weights", "licence")


def run(
    out: Annotated[str, argument("folder for the records, one JSON file each", "DIR")],
    models: Annotated[
        str, argument("table of encoders: model, and perhaps name, weights (where they came from), licence", "FILE")
    ],
    corpora: Annotated[
        tuple[str, ...], argument("demo/everyday, or tables of related pairs with sentence1 and sentence2", "FILE")
    ] = (EVERYDAY,),
    pooling: Annotated[
        records.Protocol | None,
        argument("of the ruler's vectors (default: sentence where the model has it, else mean)", "NAME"),
    ] = None,
) -> Answer:
    """Record encoders."""
    target = input_validation.path(out, "out")
    if target.exists() and not target.is_dir():
        raise InputError(f"out: '{target}' is no folder", field="out")
    made = _recorded(models, corpora, pooling)
    files = [records.write(one, target) for one in made]
    document = {"records": [str(path) for path in files], "table": [row for one in made for row in one.table()]}
    return Answer(document, lambda: _print(made, out))


def _recorded(models: str, names: tuple[str, ...], pooling: records.Protocol | None) -> list[Record]:
    from isoviz.tables import formats

    corpora = [read_corpus(name) for name in names]
    encoders = [
        {column: str(row[column]) for column in _COLUMNS if row.get(column)}
        for row in formats.read(models, "models", _COLUMNS).to_pylist()
    ]
    if not all("model" in encoder for encoder in encoders):
        raise InputError(f"models: '{Path(models).name}' needs a column 'model' without gaps", field="models")
    with progress_bar() as progress:
        pairs = [(encoder, corpus) for encoder in encoders for corpus in corpora]
        return [record(**encoder, corpus=corpus, pooling=pooling, progress=progress) for encoder, corpus in pairs]


def _print(made: list[Record], out: str) -> None:
    rows = []
    for one in made:
        last = one.headline
        floor = f"{last.noise.cosine:.3f} ({last.noise.low:.3f} to {last.noise.high:.3f})"
        threshold = f"{last.threshold.cosine:.3f}" if last.threshold else "none"
        where = (one.encoder.name, f"{one.corpus.name} {one.corpus.digest[:8]}", one.protocol, str(last.n), str(last.d))
        rows.append((*where, floor, f"{last.auc[0]:.3f}", threshold))
    print_table(("encoder", "corpus", "protocol", "n", "d", "noise floor, 99 %", "AUC", "threshold"), rows)
    print(f"{len(made)} records in {out}")
