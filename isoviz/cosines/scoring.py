"""The ruler as a similarity function, for libraries that compare vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from isoviz.cosines.records import Ruler
from isoviz.cosines.sides import Matrix
from isoviz.errors import InputError


def similarity(ruler: Ruler, what: Literal["percentile", "probability"] = "percentile") -> Callable[[Any, Any], Any]:
    """A function from vectors (n, d) and (m, d) to (n, m) scores between 0 and 1, for sentence-transformers and others.

        util.semantic_search(queries, documents, score_function=isoviz.cosines.similarity(ruler))

    The score is the share of unrelated pairs with a lower cosine, or P(related). Scores rank pairs as cosines do: a billionth of the
    cosine breaks ties, in double precision. The function returns a torch tensor on the vectors' device if it gets one, else an array.

    Raises:
        InputError: `what` is neither, or P(related) is unknown because no pairs are related or nothing separates them.
    """
    if what == "percentile":
        cosines, scores = ruler.cosine, ruler.percentile
    elif what == "probability" and ruler.related is not None and ruler.related.separates:
        cosines, scores = ruler.related.cosine, ruler.related.probability
    else:
        allowed = "'percentile', or 'probability' of a ruler whose related pairs are separable"
        raise InputError(f"what: expected {allowed} (got '{what}')", field="what")

    def score(first: Any, second: Any) -> Any:
        cosine = _unit(first) @ _unit(second).T
        found = (1 - 1e-9) * np.interp(cosine, cosines, scores) + 1e-9 * (1 + cosine) / 2
        device = next((side.device for side in (first, second) if hasattr(side, "detach")), None)
        if device is None:
            return found
        import torch

        # Apple's processors have no double precision, so ties stay there
        return torch.from_numpy(found).to(device, torch.float32 if device.type == "mps" else torch.float64)

    return score


def _unit(side: Any) -> Matrix:
    """(n, d) of length 1, from an array, a tensor, or one vector; zeros stay."""
    points = np.atleast_2d(np.asarray(side.detach().cpu().double() if hasattr(side, "detach") else side, np.float64))
    return points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
