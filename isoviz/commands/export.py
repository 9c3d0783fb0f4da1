"""`isoviz export`: a fitted chain as a matrix for numpy, or as a model for sentence-transformers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz import boundary, posthoc
from isoviz.commands.options import add_store, whole
from isoviz.commands.output import print_json
from isoviz.errors import InputError
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.export import Origin, as_numpy, require_affine


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    parser.add_argument(
        "--chain", required=True, metavar="CHAIN", help="affine steps, as What-if writes them: zca:eps=0.1"
    )
    fitted = parser.add_mutually_exclusive_group(required=True)
    fitted.add_argument(
        "--fit-on", metavar="FILE", help="vectors to fit the chain on: .npy, .npz, .safetensors, .parquet, .csv, …"
    )
    fitted.add_argument("--run", metavar="ID", help="a finished run, whose training vectors the chain is fitted on")
    parser.add_argument(
        "--out",
        required=True,
        metavar="PATH",
        help="FILE.zip: W, b and six lines of numpy; else the new model's folder",
    )
    parser.add_argument(
        "--pairs", metavar="FILE", help="scored pairs or relevance for the ids in --fit-on; adds their read-outs"
    )
    parser.add_argument("--model", help="the model that encoded the vectors of --fit-on")
    parser.add_argument(
        "--pooling",
        choices=("sentence", "cls", "last", "mean"),
        help="the pooling of those vectors (default: as for measure)",
    )
    parser.add_argument("--prompt", metavar="NAME", help="the model's prompt used for them")
    parser.add_argument("--truncate-dim", type=whole, metavar="N", help="keep only the first N dimensions")
    add_store(parser)


def run(options: argparse.Namespace) -> int:
    """Fit the chain, write it and verify the file. Returns 0."""
    out = boundary.path(options.out, "out")
    as_matrix = out.suffix == ".zip"
    if not out.parent.is_dir():
        raise InputError(f"out: no folder '{out.parent}'", field="out")
    if out.exists() and (as_matrix or not out.is_dir() or any(out.iterdir())):
        raise InputError(f"out: '{out}' exists; choose a new file or folder", field="out")
    for field in ("pooling", "prompt", "truncate_dim"):
        if getattr(options, field) is not None and options.model is None:
            raise InputError(f"{field}: only with --model", field=field)
    if options.pairs is not None and options.fit_on is None:
        raise InputError("pairs: only with --fit-on", field="pairs")
    rows = None
    if options.run is not None:
        affine, origin, order = _of_run(options, as_matrix)
    else:
        affine, origin, order, rows = _of_file(options, as_matrix)
    document: dict[str, Any] = {"out": str(out), **origin.as_json()}
    if as_matrix:
        out.write_bytes(as_numpy(affine, origin))
    else:
        from isoviz.whatif import export

        assert order is not None
        document["deviation"] = export.write_model(order, affine, origin, out, rows)
    if options.json:
        print_json(document)
        return 0
    print(f"{out}: {'W, b and six lines of numpy' if as_matrix else 'a sentence-transformers model'}")
    print(origin.words)
    if not as_matrix:
        print(f"- Checked: largest deviation {document['deviation']:.0e} of the longest vector")
    return 0


def _of_run(options: argparse.Namespace, as_matrix: bool) -> tuple[Affine, Origin, dict[str, Any] | None]:
    from isoviz.runs.store import Store
    from isoviz.whatif import chains, embeddings, export
    from isoviz.whatif.engine import WhatIf
    from isoviz.whatif.request import request_for

    if options.model is not None:
        raise InputError("model: a run already names its model; omit --model", field="model")
    store = Store(options.store)
    row = store.get(options.run)
    order = None
    checkpoint = Path(request_for(row, store.folder_of(row.id)).checkpoint)
    if not as_matrix:
        order = export.spec_of_run(row.config, checkpoint, "head", "")
    engine = WhatIf(embeddings(options.run, store=store), trains=True)
    steps = chains.read(options.chain)
    affine, origin = export.matrix_of(engine, steps, engine.full(steps))
    return affine, origin, order and {**order, "embeddings": origin.key}


def _of_file(
    options: argparse.Namespace, as_matrix: bool
) -> tuple[Affine, Origin, dict[str, Any] | None, NDArray[np.floating]]:
    from isoviz import vectors
    from isoviz.models import sources
    from isoviz.models.extract import usual_pooling
    from isoviz.whatif import chains, export

    order = None
    if not as_matrix:
        if options.model is None:
            raise InputError(
                "model: name the model that encoded these vectors, or choose an --out that ends in .zip", field="model"
            )
        source = sources.fetch(sources.resolve(options.model))
        pooling = options.pooling or usual_pooling(source)
        named = {"model": options.model, "pooling": pooling, "prompt": options.prompt, "truncate": options.truncate_dim}
        order = {name: value for name, value in named.items() if value is not None}
    steps = chains.read_for_vectors(options.chain)
    vector_set = vectors.read(options.fit_on, relations=options.pairs, field="fit-on")
    chain = posthoc.chain([step.make() for step in steps])
    try:
        chain.fit(vector_set.points)
    except InputError as error:
        raise InputError(f"chain: cannot be fitted on these vectors: {error}", field="chain") from None
    made_by = ", ".join(f"{name} {value}" for name, value in (order or {}).items())
    affine = require_affine(chain)
    try:
        measured = export.measured_on(vector_set, steps)
    except InputError:  # too few rows; the output says that nothing was measured
        measured = ()
    origin = Origin(chains.write(steps), vector_set.name, vector_set.key, vector_set.n, "all", made_by, measured)
    return affine, origin, order, vector_set.points
