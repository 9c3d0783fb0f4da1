"""Which step of a chain a fine-tune can do in training, with which parameters, and which cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from isoviz import methods
from isoviz.config import ParamValue
from isoviz.posthoc.isotropic_scaling import DEFAULT_EPS
from isoviz.whatif.chains import LAYER, Step


@dataclass(frozen=True)
class FineTune:
    """A training method in a step's place.

    Attributes:
        step: of the chain.
        method: its slug.
        params: complete.
        note: what is not the same.
    """

    step: Step
    method: str
    params: dict[str, ParamValue]
    note: str


WITHOUT: Final[Mapping[str, str]] = {
    "all_but_the_top": "it removes directions of a finished cloud; an encoder in training would bring them back in others",
    "cluster_based": "its clusters are found in a finished cloud, and would have to be found anew at every step",
    "zca": "it divides by the whole covariance, which moves at every step; batch normalisation and IsoBN do it per dimension",
    "pca_whitening": "it divides by the whole covariance, which moves at every step; batch normalisation and IsoBN do it per "
    "dimension",
    "rotation": "a head in training turns with the cloud, so nothing would change",
    "shift": "a head in training takes a shift into its bias, so nothing would change",
    "scale": "a head in training takes the unit into its weights; what is left is another learning rate",
}
"""Why no training method corresponds to a transform."""


def of_chain(steps: Sequence[Step]) -> tuple[list[FineTune], list[Step]]:
    """The steps that a training method corresponds to, and those that none does."""
    found, without = [], []
    for step in steps:
        made = _of(step)
        if made is None:
            without.append(step)
        else:
            found.append(made)
    return found, without


def _of(step: Step) -> FineTune | None:
    p: dict[str, Any] = step.params.model_dump()
    if step.slug == "isobn":
        eps = DEFAULT_EPS[p["form"]] if p["eps"] is None else p["eps"]
        params = {"beta": p["beta"], "eps": eps, "form": p["form"]}
        note = "In training the statistics move with the encoder, and the encoder adapts to the scaling."
        return FineTune(step, "isobn", methods.check_params("isobn", params), note)
    if step.slug == "batch_norm":
        note = "In training the statistics are those of batches, and the floor is the method's own, 1e-5."
        return FineTune(step, "batchnorm", methods.check_params("batchnorm", {}), note)
    if step.slug == LAYER:
        note = "The run fine-tunes first, then trains the layer on all its training rows."
        return FineTune(step, "isolayer", methods.check_params("isolayer", p), note)
    return None
