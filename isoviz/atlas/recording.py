"""Recording an encoder on a corpus: one pass over the texts, then each layer's measures, floor and separation."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import isoviz
from isoviz import cosines, metrics
from isoviz.atlas.corpora import Corpus
from isoviz.atlas.records import MAX_LENGTH, VERSION, Protocol, Record, rounded

_LIBRARIES: Final = ("torch", "transformers", "numpy", "scipy")


def record(
    model: str,
    corpus: Corpus,
    *,
    name: str | None = None,
    weights: str = "",
    licence: str = "",
    pooling: Protocol | None = None,
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Record:
    """The record of an encoder. Imports torch.

    Args:
        model: bundled name, local directory or hub id.
        name: in the atlas; None for `model`, of a directory without its path.
        weights, licence: see `Encoder`; those of the bundled models are known.
        pooling: of the ruler's vectors; None for `sentence` if the model has it, else `mean`.
        progress: called with the steps done, all steps, and the current one.

    Raises:
        ModelError: the model cannot be found or loaded.
        InputError: it has no such pooling, or `isoviz.ruler` refuses its vectors.
    """
    from isoviz.models import profile, sources
    from isoviz.models.extract import layer_views, offered_poolings

    source = sources.fetch(sources.resolve(model), progress)
    if source.kind == "bundled":
        weights, licence = "bundled with IsoViz", "Apache-2.0"
    pooling = pooling or ("sentence" if "sentence" in offered_poolings(source)[0] else "mean")
    poolings = sorted({"mean", pooling})
    views = layer_views(source, [corpus.texts], poolings=poolings, max_length=MAX_LENGTH, progress=progress)
    clouds: list[tuple[int, Protocol]] = [(layer, "mean") for layer in range(views.depth + 1)]
    clouds += [(views.depth, pooling)] if pooling != "mean" else []
    layers: list[dict[str, Any]] = []
    for done, (layer, pooled) in enumerate(clouds):
        progress(done, len(clouds), "measuring layers")
        ruler = cosines.ruler(views.points(layer, pooled), pairs=corpus.relation).model_dump()
        cloud = profile.record(views, layer, pooled)
        place = {"layer": layer, "pooling": pooled, "n": cloud.n, "d": cloud.d, "floor": ruler["floor"]}
        measures = {slug: cloud.number(slug) for slug in cloud.readings if metrics.get(slug).gives != "curve"}
        of_related = {name: ruler["related"][name] for name in ("auc", "separates", "threshold")}
        layers.append({**place, "measures": measures, **of_related})
    shown = name or (Path(model).name if source.kind == "local" else model)
    encoder = {
        "name": shown,
        "fingerprint": source.fingerprint,
        "revision": source.revision,
        "weights": weights,
        "licence": licence,
    }
    document = {
        "version": VERSION,
        "encoder": encoder,
        "corpus": {
            "name": corpus.name,
            "digest": corpus.digest,
            "texts": len(corpus.texts),
            "pairs": len(corpus.pairs),
        },
        "protocol": pooling,
        "layers": layers,
        "ruler": ruler | {"model": shown, "relation": f"the pairs of {corpus.name}"},
        "notes": views.warnings,
        "made_with": {"isoviz": isoviz.__version__, **{library: version(library) for library in _LIBRARIES}},
    }
    return Record.model_validate(rounded(document))
