"""The measures that a watch reports, and an evaluator for sentence-transformers that reports them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from isoviz import metrics
from isoviz.errors import InputError
from isoviz.metrics.intervals import interval_of
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.sample import Sample

MEASURES: Final = ("isoscore_unbiased", "effective_rank", "mean_cosine", "uniformity", "rogue_share", "hubness")


def measures_of(vectors: Any) -> tuple[dict[str, float], dict[str, str]]:
    """Isotropy measures of vectors (n, d), independent rows: values by name, and the reasons for missing ones.

    `isoscore_unbiased` and `directions` (its participation ratio, unbiased) come with `_low` and `_high`, their 95 % jackknife
    interval. A biased measure is left out below the number of points that it declares enough.

    Raises:
        InputError: (a ValueError) wrong shape or non-finite entries.
    """
    sample = Sample(vectors)
    values: dict[str, float] = {}
    missing: dict[str, str] = {}
    for slug in MEASURES:
        metric = metrics.get(slug)
        enough = metric.enough.points(sample.d) if metric.enough.points else 0
        if metric.enough.bias == "falls" and sample.n < enough:
            missing[slug] = f"not enough points: {sample.n} of {math.ceil(enough)}"
            continue
        reading = reading_of(metric, sample, interval=False)
        if isinstance(reading.value, float):
            values[slug] = reading.value
        else:
            missing[slug] = reading.undefined
    if "isoscore_unbiased" in values and sample.moments is not None:
        between = interval_of(sample.moments)
        width = sample.d - 1
        values["directions"] = 1 + width * values["isoscore_unbiased"]
        if not between.problem:
            for end, value in (("low", between.low), ("high", between.high)):
                values[f"isoscore_unbiased_{end}"], values[f"directions_{end}"] = value, 1 + width * value
    return values, missing


def IsotropyEvaluator(sentences: Sequence[str], name: str = "", batch_size: int = 32) -> Any:  # noqa: N802 — used like the library's classes
    """A sentence-transformers evaluator: encodes the sentences and returns their measures (`measures_of`). Its primary metric
    is `isoscore_unbiased`, more isotropic is higher; that is not the same as more useful.

    Args:
        sentences: at least two texts; repeated texts are used once.
        name: prefix of the measures.
        batch_size: of the encoding.

    Raises:
        InputError: (a ValueError) fewer than two different texts.
    """
    from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

    texts = list(dict.fromkeys(sentences))
    if len(texts) < 2:
        raise InputError(f"sentences must hold at least 2 different texts, got {len(texts)}", field="sentences")

    class Evaluator(SentenceEvaluator):
        def __init__(self) -> None:
            super().__init__()
            self.name = name
            self.primary_metric = "isoscore_unbiased"

        def __call__(
            self, model: Any, output_path: str | None = None, epoch: int = -1, steps: int = -1
        ) -> dict[str, float]:
            vectors = model.encode(texts, batch_size=batch_size, show_progress_bar=False, convert_to_numpy=True)
            values, _ = measures_of(vectors)
            values.setdefault("isoscore_unbiased", math.nan)
            named: dict[str, float] = self.prefix_name_to_metrics(values, name)
            self.store_metrics_in_model_card_data(model, named, epoch, steps)
            return named

    return Evaluator()
