"""`isoviz export`: a fitted chain as a matrix for numpy, or as a model for sentence-transformers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz import input_validation, posthoc
from isoviz.commands.options import Column, StoreOption, file_of_vectors
from isoviz.commands.output import Answer
from isoviz.errors import InputError
from isoviz.operations.operation import argument
from isoviz.posthoc.export import Origin, as_numpy, require_affine
from isoviz.posthoc.protocol import Affine
from isoviz.runs.store import Store


def run(
    chain: Annotated[str, argument("affine steps, as What-if writes them: zca:ridge=0.1", "CHAIN")],
    out: Annotated[str, argument("FILE.zip: W, b and six lines of numpy; else the new model's folder", "PATH")],
    fit_on: Annotated[str | None, argument(f"{file_of_vectors()}; the chain is fitted on them", "FILE")] = None,
    run: Annotated[
        str | None, argument("or a finished run, whose training vectors the chain is fitted on", "ID")
    ] = None,
    pairs: Annotated[
        str | None, argument("scored pairs or relevance for the ids in --fit-on; adds their read-outs", "FILE")
    ] = None,
    model: Annotated[str | None, argument("the model that encoded the vectors of --fit-on")] = None,
    pooling: Annotated[
        Literal["sentence", "cls", "last", "mean"] | None,
        argument("the pooling of those vectors (default: as for measure)"),
    ] = None,
    prompt: Annotated[str | None, argument("the model's prompt used for them")] = None,
    truncate_dim: Annotated[int | None, argument("keep only the first N dimensions")] = None,
    column: Column = None,
    store: StoreOption = None,
) -> Answer:
    """Fit the chain, write it and verify the file."""
    if (fit_on is None) == (run is None):
        raise InputError("fit-on: give either --fit-on or --run", field="fit-on")
    target = input_validation.path(out, "out")
    as_matrix = target.suffix == ".zip"
    if not target.parent.is_dir():
        raise InputError(f"out: no folder '{target.parent}'", field="out")
    if target.exists() and (as_matrix or not target.is_dir() or any(target.iterdir())):
        raise InputError(f"out: '{target}' exists; choose a new file or folder", field="out")
    of_model = {"pooling": pooling, "prompt": prompt, "truncate": truncate_dim}
    for field, value in {"pooling": pooling, "prompt": prompt, "truncate_dim": truncate_dim}.items():
        if value is not None and model is None:
            raise InputError(f"{field}: only with --model", field=field)
    rows = None
    if run is not None:
        if model is not None:
            raise InputError("model: a run already names its model; omit --model", field="model")
        for field, value in {"pairs": pairs, "column": column}.items():
            if value is not None:
                raise InputError(f"{field}: only with --fit-on", field=field)
        affine, origin, order = _of_run(chain, Store(store), run, as_matrix)
    else:
        assert fit_on is not None
        order = None if as_matrix else _model_of(model, of_model)
        affine, origin, rows = _of_file(chain, fit_on, column, pairs, order)
    document: dict[str, Any] = {"out": str(target), **origin.as_json()}
    lines = [
        f"{target}: {'W, b and six lines of numpy' if as_matrix else 'a sentence-transformers model'}",
        origin.words,
    ]
    if as_matrix:
        target.write_bytes(as_numpy(affine, origin))
    else:
        from isoviz.whatif import export

        assert order is not None
        document["deviation"] = export.write_model(order, affine, origin, target, rows)
        lines.append(f"- Checked: largest deviation {document['deviation']:.0e} of the longest vector")
    return Answer(document, "\n".join(lines))


def _of_run(chain: str, store: Store, run: str, as_matrix: bool) -> tuple[Affine, Origin, dict[str, Any] | None]:
    from isoviz.whatif import chains, embeddings, export
    from isoviz.whatif.engine import WhatIf
    from isoviz.whatif.request import request_for

    row = store.get(run)
    checkpoint = Path(request_for(row, store.folder_of(row.id)).checkpoint)
    order = None if as_matrix else export.spec_of_run(row.config, checkpoint, "head", "")
    engine = WhatIf(embeddings(run, store=store), trains=True)
    steps = chains.read(chain)
    affine, origin = export.matrix_of(engine, steps, engine.full(steps))
    return affine, origin, order and {**order, "embeddings": origin.key}


def _model_of(model: str | None, choices: Mapping[str, Any]) -> dict[str, Any]:
    """The model that encoded the vectors, as `isoviz.whatif.export` takes it."""
    from isoviz.models import sources
    from isoviz.models.extract import usual_pooling

    if model is None:
        raise InputError(
            "model: name the model that encoded these vectors, or choose an --out that ends in .zip", field="model"
        )
    source = sources.fetch(sources.resolve(model))
    named = {"model": model, **choices, "pooling": choices["pooling"] or usual_pooling(source)}
    return {name: value for name, value in named.items() if value is not None}


def _of_file(
    chain: str, fit_on: str, column: str | None, pairs: str | None, order: dict[str, Any] | None
) -> tuple[Affine, Origin, NDArray[np.floating]]:
    from isoviz import vectors
    from isoviz.whatif import chains, export

    steps = chains.read_for_vectors(chain)
    vector_set = vectors.read(fit_on, vectors.Columns(points=column), relations=pairs, field="fit-on")
    transform = posthoc.chain([step.make() for step in steps])
    try:
        transform.fit(vector_set.points)
    except InputError as error:
        raise InputError(f"chain: cannot be fitted on these vectors: {error}", field="chain") from None
    made_by = ", ".join(f"{name} {value}" for name, value in (order or {}).items())
    affine = require_affine(transform)
    try:
        measured = export.measured_on(vector_set, steps)
    except InputError:  # too few rows; the output says that nothing was measured
        measured = ()
    origin = Origin(chains.write(steps), vector_set.name, vector_set.key, vector_set.n, "all", made_by, measured)
    return affine, origin, vector_set.points
