"""The output matrix of a model (a run's head, else a vocabulary): I1, I2 and the lengths of its rows.

It depends only on the model, so it is measured once per model, not per view.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.exploring import results
from isoviz.home import make_private
from isoviz.jobs.results import read_json, write_json
from isoviz.metrics.partition_function import Variant, partitions

if TYPE_CHECKING:
    from isoviz.exploring.encoders import FinishedRun
    from isoviz.models.sources import ModelSource

VERSION: Final = 1
"""Version of the stored result. Raise it when old results could no longer be read correctly."""
READINGS: Final = (
    Variant(),
    Variant(scale_free=True),
    Variant(convention="published"),
    Variant(convention="published", scale_free=True),
)


def of(
    source: ModelSource, run: FinishedRun | None = None, tell: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """The result of `measure` for a model's output matrix, with a description (`what`), or the `reason` why there is none. JSON-ready.

    Args:
        source: a local model; for a run, with the run's fingerprint.
        run: the finished run to which the encoder belongs.
        tell: called with finished rows and total rows.
    """
    from isoviz.models.checkpoint import output_embeddings

    cached_file = results.STORE.root / "outputs" / f"{source.fingerprint}-{VERSION}.json"
    facts = read_json(cached_file)
    if facts is not None:
        return facts
    if run is not None and run.model.output.out_features:
        origin = f"the output layer of the run's {run.model.kind} head"
        facts = {"what": origin} | measure(run.model.output.weight.detach().cpu().numpy(), tell)
    else:
        weights = output_embeddings(source)
        facts = {"reason": _WITHOUT} if weights is None else {"what": _VOCABULARY} | measure(weights, tell)
    if source.fingerprint:
        make_private(cached_file.parent)
        write_json(cached_file, facts)
    return facts


_VOCABULARY: Final = "the vocabulary matrix of its language-model head"
_WITHOUT: Final = (
    "this checkpoint is an encoder alone: it has neither a language-model head nor a classifier. "
    "The encoder of a finished run (run:ID) has its classifier"
)


def measure(weights: NDArray[Any], tell: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """`rows` N and `d` of W (N, d); `pairs`: I1 and I2 for each of `READINGS`, None if undefined; `norms`: min, mean, median
    and max of ‖w‖."""
    lengths = np.asarray(metrics.row_norms(weights), dtype=np.float64)
    i1_i2 = partitions(weights, READINGS, tell)
    pairs = [
        {"convention": reading.convention, "scale_free": reading.scale_free, "i1": i1, "i2": i2}
        for reading, (i1, i2) in zip(READINGS, (pair or (None, None) for pair in i1_i2), strict=True)
    ]
    norms = {"min": lengths.min(), "mean": lengths.mean(), "median": np.median(lengths), "max": lengths.max()}
    return {
        "rows": int(weights.shape[0]),
        "d": int(weights.shape[1]),
        "pairs": pairs,
        "norms": {name: float(value) for name, value in norms.items()},
    }
