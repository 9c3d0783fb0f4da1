"""EmbedFilter: vectors of a language model without the directions to which its unembedding matrix gives most and least weight."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.posthoc.directions import peak_signs
from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper, Params, parameter

if TYPE_CHECKING:
    from isoviz.models.sources import ModelSource


class EmbedFilterParams(Params):
    model: str | None = parameter(
        None,
        label="Model",
        help="The language model that made the vectors: a name, a directory or a hub id. Its weights hold the unembedding matrix.",
        source="Wu et al. 2026",
    )
    ratio: int = parameter(
        2,
        label="Reduction",
        symbol="τ",
        help="Keep ⌊d/τ⌋ directions from the middle of the spectrum. 1 keeps all.",
        source="Wu et al. 2026, the authors' code (filter_ratio 2)",
        ge=1,
        slider=(1, 8, 1),
    )


class EmbedFilter(CataloguedTransform):
    """y = xV, where V holds the middle k = ⌊d/τ⌋ right singular vectors of the model's unembedding matrix W (vocabulary, d), in order
    of decreasing singular value: those after the first ⌊(d − k)/2⌋. As in the authors' code, k columns are returned; their cosines are
    those of the projection in d dimensions.

    Learnt: `matrix` (d, k), which depends on the model only.
    """

    slug = "embed_filter"
    title = "EmbedFilter"
    summary = "Drops the directions in which a language model's unembedding matrix is strongest and weakest, where frequent tokens lie."
    equation = (
        r"y = x\,[v_{m+1}, \dots, v_{m+k}],\quad W = \sum_i \sigma_i u_i v_i^\top,\quad "
        r"k = \lfloor d/\tau \rfloor,\; m = \lfloor (d-k)/2 \rfloor"
    )
    paper = Paper("Wu et al. 2026", entries()["wu2026unembedding"])
    Params = EmbedFilterParams
    params: EmbedFilterParams
    traps = (
        "It is meant for vectors that the model's unembedding reads: last-layer states of a decoder. Other vectors of the same width "
        "are accepted, but the directions mean nothing there.",
        "Masked language models have a further layer before the unembedding, so their last-layer states are other vectors.",
        "Nothing is centred, and the directions do not depend on your vectors.",
    )
    training = "the unembedding matrix is not part of a fine-tuned encoder"
    ARRAYS = {"matrix": "dk"}
    needs = "model"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        if self.params.model is None:
            raise InputError(
                "name the model that made the vectors; its weights hold the unembedding matrix", field="model"
            )
        from isoviz.models import sources

        source, d = sources.resolve(self.params.model), x.shape[1]
        if source.kind == "hub":  # a link with this chain must not start a download
            raise InputError(f"'{source.name}' is not on this machine: download it first, in Explore", field="model")
        vectors = right_singular_vectors(source)
        if len(vectors) != d:
            raise InputError(
                f"the unembedding of '{self.params.model}' reads {len(vectors)} numbers, the points have {d}",
                field="model",
            )
        kept = self.image_width(d)
        first = (d - kept) // 2
        return Learnt({"matrix": vectors[:, first : first + kept]})

    def image_width(self, d: int) -> int:
        if self.params.ratio > d:
            raise InputError(f"ratio must be at most {d}, the dimensions of the points, got {self.params.ratio}")
        return d // self.params.ratio


@functools.lru_cache(maxsize=2)
def right_singular_vectors(source: ModelSource) -> NDArray[np.float64]:
    """(d, d): of a model's unembedding matrix as columns, in order of decreasing singular value, largest entries positive.

    Raises:
        InputError: the model has no unembedding matrix (field `model`).
    """
    from isoviz.models import checkpoint

    weight = checkpoint.output_embeddings(source)
    if weight is None:
        raise InputError(f"'{source.name}' has no unembedding matrix", field="model")
    gram: Any = 0.0
    for block in np.array_split(weight, -(-len(weight) // 8192)):  # single precision would lose the smallest directions
        rows = block.astype(np.float64)
        gram = gram + rows.T @ rows
    vectors = np.linalg.eigh(gram)[1][:, ::-1]
    return np.ascontiguousarray(vectors * peak_signs(vectors))
