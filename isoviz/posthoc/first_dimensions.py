"""The first k dimensions of each vector, unchanged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import CataloguedTransform, Effects, Learnt, Paper, Params, parameter

BIBTEX = """\
@inproceedings{kusupati2022matryoshka,
  title={Matryoshka Representation Learning},
  author={Kusupati, Aditya and Bhatt, Gantavya and Rege, Aniket and Wallingford, Matthew and Sinha, Aditya and
          Ramanujan, Vivek and Howard-Snyder, William and Chen, Kaifeng and Kakade, Sham and Jain, Prateek and Farhadi, Ali},
  booktitle={Advances in Neural Information Processing Systems},
  year={2022}
}
"""


class TruncationParams(Params):
    """Parameters of a truncation."""

    keep: int | None = parameter(
        None,
        label="Dimensions kept",
        symbol="k",
        help="Number of leading dimensions to keep. Empty keeps all.",
        source="Kusupati et al. 2022, section 3",
        sweep=(64, 128, 256),
        ge=1,
    )


class Truncation(CataloguedTransform):
    """y = (x_1, …, x_k). Learnt: `matrix` (d, k), which depends only on the width of the fit set."""

    slug = "truncation"
    title = "Truncation"
    summary = "Keeps the first k dimensions unchanged. Models trained for truncation (Matryoshka) lose little."
    equation = r"y = (x_1, \dots, x_k)"
    paper = Paper("Kusupati et al. 2022", BIBTEX)
    Params = TruncationParams
    params: TruncationParams
    traps = (
        "Unless the model was trained for truncation, the first dimensions are no better than any others. PCA whitening keeps "
        "the directions that vary most.",
        "Vectors of length 1 become shorter: use cosine similarity, or normalise again.",
    )
    effects = Effects(
        isoscore="that of the first k dimensions alone",
        ev="of k dimensions",
        mean_cosine="of k dimensions",
    )
    training = "a head in training can read any dimensions; Matryoshka losses train an encoder for truncation"
    ARRAYS = {"matrix": "dk"}
    coordinates = "own"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        return Learnt({"matrix": np.eye(x.shape[1])[:, : self.image_width(x.shape[1])]})

    def image_width(self, d: int) -> int:
        count = d if self.params.keep is None else self.params.keep
        if count > d:
            raise InputError(f"keep must be at most {d}, the dimensions of the points, got {count}")
        return count

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        count = self.image_width(cloud.width)
        factors = (np.arange(cloud.width) < count).astype(np.float64)
        return replace(cloud.scaled(factors, mean=cloud.mean[:count]), basis=np.eye(cloud.width)[:count])
