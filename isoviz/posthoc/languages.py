"""Removal of what all texts of a language share: its mean, or its strongest directions."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.posthoc.protocol import CataloguedTransform, Groups, Learnt, Paper, Params, parameter

CENTRING = Paper("Libovický et al. 2020", entries()["libovicky2020language"])
REMOVAL = Paper("Yang et al. 2021", entries()["yang2021simple"])


class LanguageRemovalParams(Params):
    form: Literal["mean", "directions"] = parameter(
        "mean",
        label="What is removed",
        help="mean: the mean of the row's language. directions: the strongest directions of its uncentred vectors (LIR).",
        source="mean: Libovický et al. 2020. directions: Yang et al. 2021, section 2",
    )
    remove: int = parameter(
        1,
        label="Directions removed",
        symbol="r",
        help="For directions: how many of each language.",
        source="Yang et al. 2021, the authors' notebook (r = 1)",
        ge=1,
    )


class LanguageRemoval(CataloguedTransform):
    """y = x − μ_g, or y = x − C_g C_gᵀ x, where g is the group of the row, such as its language, in `groups` of `fit` and `transform`.
    C_g holds the first r right singular vectors of the group's vectors as rows, which are not centred.

    Rows of an unknown group, or of one that the fit set lacks, use the mean or the directions of all rows. Learnt, with row 0 for all
    rows and row g + 1 for group g: `means` (g, d), `directions` (g, d, r) with columns of zeros beyond a group's rank. Of the two, the
    one that the form does not use is zero. `single`: the number of groups with one row, which maps to 0.
    """

    slug = "language_removal"
    title = "Language removal"
    summary = "Removes from every vector what its language's vectors share. The labels name the languages."
    equation = r"y = x - \mu_{g(x)} \quad\text{or}\quad y = x - C_{g(x)} C_{g(x)}^\top x"
    paper = CENTRING
    variants = {"Directions (LIR)": REMOVAL}
    Params = LanguageRemovalParams
    params: LanguageRemovalParams
    traps = (
        "If the labels are classes and not languages, it removes what a classifier reads.",
        "The rows to be transformed need labels too; those without a known language are treated as the average row.",
        "A language with one row in the fit set maps it to 0; see `single`.",
        "If topics differ between languages, part of the topic is removed with the language.",
    )
    training = "an encoder in training would learn new language directions"
    ARRAYS = {"means": "gd", "directions": "gdr"}
    COUNTS = ("single",)
    needs = "groups"

    def learn(self, x: NDArray[np.float64], eps: float, groups: Groups | None = None) -> Learnt:
        assert groups is not None
        count, d = int(groups.max(initial=-1)) + 1, x.shape[1]
        remove = self.params.remove if self.params.form == "directions" else 0
        if remove > d:
            raise InputError(f"remove must be at most {d}, the dimensions of the points, got {remove}")
        means, directions, single = np.zeros((count + 1, d)), np.zeros((count + 1, d, remove)), 0
        for group in range(-1, count):
            rows = x if group < 0 or not (groups == group).any() else x[groups == group]
            single += len(rows) == 1
            if remove:
                leading = _strongest(rows, remove, eps)
                directions[group + 1, :, : leading.shape[1]] = leading
            else:
                means[group + 1] = rows.mean(axis=0)
        note = f"{single} languages have one row, which becomes 0"
        return Learnt({"means": means, "directions": directions}, {"single": single}, (note,) if single else ())

    def apply(self, x: Any, learnt: dict[str, Any], groups: Groups | None = None) -> Any:
        assert groups is not None
        place = np.where(groups < len(learnt["means"]) - 1, groups + 1, 0)
        image = x - learnt["means"][place]
        if self.params.form == "directions":
            for index in np.unique(place):
                rows, directions = place == index, learnt["directions"][index]
                image[rows] = image[rows] - (image[rows] @ directions) @ directions.T
        return image


def _strongest(x: NDArray[np.float64], count: int, eps: float) -> NDArray[np.float64]:
    """(d, at most count): the first right singular vectors of x (n, d), without those that are only rounding error."""
    unit = float(np.abs(x).max()) or 1.0  # so that squares neither overflow nor underflow
    if len(x) < x.shape[1]:
        _, lengths, rows = np.linalg.svd(x / unit, full_matrices=False)
    else:
        squares, vectors = np.linalg.eigh((x / unit).T @ (x / unit))
        lengths, rows = np.sqrt(np.maximum(squares[::-1], 0.0)), vectors[:, ::-1].T
    floor = max(eps, np.sqrt(x.shape[1] * np.finfo(np.float64).eps)) * lengths.max(initial=0.0)
    return np.asarray(rows[: min(count, int(np.count_nonzero(lengths > floor)))].T)
