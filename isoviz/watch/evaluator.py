"""An evaluator for sentence-transformers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isoviz.errors import InputError
from isoviz.watch.measures import measures_of


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
