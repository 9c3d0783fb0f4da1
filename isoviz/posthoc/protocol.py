"""The interface of a post-hoc transform: fit, transform, affine form. Subclasses implement two hooks. Fitting uses numpy
float64. `apply` is written once, in operators that numpy and torch share, and runs in float64 if the device supports it, so
that a float32 tensor gets the rounded float64 result. Gradients reach the input, never the fitted arrays.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from isoviz.errors import InputError, input_error, unknown_name
from isoviz.metrics.cloud import Array, Points, float64_matrix, is_tensor, resolution, sum_dtype
from isoviz.parameters import Paper, Params, ParamValue, parameter
from isoviz.posthoc.directions import surrogate_points

if TYPE_CHECKING:
    from isoviz.posthoc.factored import FactoredCloud, Kind

__all__ = [
    "Affine",
    "CataloguedTransform",
    "InTraining",
    "Learnt",
    "Paper",
    "Params",
    "Transform",
    "parameter",
]

LARGEST = 1e100
"""Larger entries are refused: their squares and fourth powers could overflow float64."""
Groups = NDArray[np.int64]
"""(n,) codes from 0 of the rows' groups, such as their languages, −1 if unknown."""


FitsOn = Literal["mean", "sample", "population", "points"]
"""The data that a fit needs: at most the mean; the mean and the covariance with divisor n − 1 or n; or the points
themselves."""


class Affine(NamedTuple):
    """The map x ↦ xA + b of row vectors.

    Far from the origin `(x − μ)A` is more accurate than `xA + b`, so `transform` computes the former.

    Attributes:
        matrix: A, (d, d').
        offset: b, (d',).
    """

    matrix: NDArray[np.float64]
    offset: NDArray[np.float64]

    def of_points(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """xA + b of (n, d) points or of one (d,) mean."""
        image: NDArray[np.float64] = points @ self.matrix + self.offset
        return image

    def then(self, following: Affine) -> Affine:
        """The composition: this map, then `following`."""
        return Affine(self.matrix @ following.matrix, following.of_points(self.offset))


@dataclass(frozen=True)
class Learnt:
    """The fitted state.

    Attributes:
        arrays: float64 arrays for `apply`.
        counts: integers to report to the user ("dropped": 3).
        notes: what the user must know of this fit, each a sentence without capital and full stop.
    """

    arrays: dict[str, NDArray[np.float64]]
    counts: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class InTraining:
    """The training method that corresponds to a transform.

    Attributes:
        method: its slug.
        params: the method's parameters that follow from the transform's.
        note: the differences.
    """

    method: str
    params: Mapping[str, ParamValue]
    note: str


class Transform:
    """Base class of everything that is fitted on one cloud and applied to others.

    Attributes:
        fits_on: the data that `fit` needs; unless this is "points", a file larger than memory is fitted in one pass.
        needs: what it needs besides points. "groups": the group of each row, such as its language, in `fit` and `transform`.
            "model": a parameter names a model. "labels": a run's labels and head, so that `fit(points)` cannot fit it.
    """

    slug: ClassVar[str]
    fits_on: FitsOn = "points"
    needs: Literal["", "groups", "model", "labels"] = ""

    def fit_sums(self, mean: NDArray[np.float64], covariance: NDArray[np.float64], n: int, eps: float) -> Self:
        """Like `fit`, but from the running sums of n points; not available if `fits_on` is "points".

        Args:
            mean, covariance: (d,) and (d, d), divisor n − 1.
            n: at least d, because fewer points span fewer directions.
            eps: `isoviz.metrics.cloud.resolution` of the points.
        """
        if self.fits_on == "points":
            raise InputError(f"{self.slug} is fitted on the points themselves, not on their mean and covariance")
        self._fit(
            _checked(surrogate_points(mean, covariance, n, "population" if self.fits_on == "population" else "sample")),
            eps,
        )
        return self

    def fit(self, points: Points, groups: Groups | None = None) -> Self:
        """Fit on a cloud (n, d), n >= 2, numpy or torch; returns self.

        Args:
            groups: (n,) codes of the rows' groups, for a transform that needs them; likewise in `transform`.

        Raises:
            InputError: fewer than two points, not two-dimensional, non-finite, beyond ±1e100, or parameters that do not suit
                this cloud.
        """
        x = _checked(float64_matrix(points))
        if len(x) < 2:
            raise InputError(f"fit needs at least 2 points, got {len(x)}")
        self._fit(x, resolution(points), _checked_groups(groups, len(x)))
        return self

    def transform(self, points: Points, groups: Groups | None = None) -> Array:
        """Apply to a cloud (n, d) of the fitted width: (n, d') float64, or a tensor of the working type on its device.

        Raises:
            InputError: not fitted, width differs from the fit set's, non-finite, or beyond ±1e100.
        """
        width = self._width()
        if not is_tensor(points):
            x = _checked(float64_matrix(points))
            _check_width(x.shape[1], width)
            image: Array = self._map(x, _checked_groups(groups, len(x)))
            return image
        import torch

        from isoviz.metrics.backward import checked_cloud

        tensor: Any = points
        cloud = checked_cloud(tensor)
        _check_width(cloud.shape[1], width)
        if cloud.numel():
            _check_size(float(cloud.detach().abs().max()))
        with torch.autocast(cloud.device.type, enabled=False):
            wide = cloud.to(sum_dtype(cloud.device))
            mapped: Array = self._map(wide, _checked_groups(groups, len(cloud))).to(cloud.dtype)
        return mapped

    def fit_transform(self, points: Points, groups: Groups | None = None) -> Array:
        """`fit`, then `transform` the same cloud."""
        return self.fit(points, groups).transform(points, groups)

    def affine(self) -> Affine | None:
        """A and b of the fitted map transform(x) = xA + b; None if the map is not affine."""
        raise NotImplementedError

    def _fit(self, x: NDArray[np.float64], eps: float, groups: Groups | None = None) -> None:
        """Fit on a validated float64 cloud; eps is `cloud.resolution` of the input before conversion to float64."""
        raise NotImplementedError

    def _map(self, x: Any, groups: Groups | None = None) -> Any:
        """Apply to a validated cloud of the right width, numpy or torch; never modifies it."""
        raise NotImplementedError

    def _width(self) -> int:
        """The width d of the fit set; `InputError` before `fit`."""
        raise NotImplementedError


class CataloguedTransform(Transform):
    """One transform of the catalogue. Parameters are keyword arguments, checked against `Params`.

    Class attributes:
        slug: its name in `isoviz.posthoc`.
        title, summary, equation, paper, traps: as for a method.
        Params: its parameters.
        variants: papers of named variants that other parameter values give, by name.
        ARRAYS: the learnt arrays, with one letter for each axis; "d" is the width of the fit set.
        COUNTS: the names of `Learnt.counts`, which are attributes of the fitted transform.
        coordinates: the coordinates that `act` needs on a `FactoredCloud`: "any", "own" or "principal". None if it cannot act
            on one: What-if then moves every point and marks the step as slower.
        training: the corresponding training method, or the reason why there is none; see `in_training`.
    """

    title: ClassVar[str]
    summary: ClassVar[str]
    equation: ClassVar[str]
    paper: ClassVar[Paper]
    Params: ClassVar[type[Params]] = Params
    traps: ClassVar[tuple[str, ...]] = ()
    variants: ClassVar[Mapping[str, Paper]] = {}
    ARRAYS: ClassVar[Mapping[str, str]]
    COUNTS: ClassVar[tuple[str, ...]] = ()
    coordinates: ClassVar[Kind | None] = None
    training: ClassVar[InTraining | str] = "no training method does the same"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__signature__ = inspect.signature(cls.Params)  # type: ignore[attr-defined]

    def __init__(self, **values: object) -> None:
        allowed = self.Params.model_fields
        for name in values:
            if name not in allowed:
                raise unknown_name(f"parameter of '{self.slug}'", name, allowed, field=name)
        python_values = {
            name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()
        }
        try:
            self.params = self.Params.model_validate(python_values)
        except ValidationError as error:
            raise input_error(error) from None
        self._learnt: Learnt | None = None

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.params.model_dump().items())
        return f"{self.slug}({arguments})"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        """Hook: fit on the validated cloud x (n, d); eps is the resolution of its original number type. With `needs = "groups"`,
        `groups` is a third argument, here and in `apply`."""
        raise NotImplementedError

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        """Hook: the image of x; `learnt` holds `Learnt.arrays` in the same library (numpy or torch) and on the same device as
        x.

        By default (x − mean) · matrix · scale + offset, of which it learns at least one.
        """
        if "mean" in learnt:
            x = x - learnt["mean"]
        if "matrix" in learnt:
            x = x @ learnt["matrix"]
        if "scale" in learnt:
            x = x * learnt["scale"]
        return x + learnt["offset"] if "offset" in learnt else x

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        """Hook: the image of a cloud in `coordinates`, as if fitted on its training split; stores nothing.

        Raises:
            InputError: as in `fit`, for parameters that do not suit this cloud.
        """
        raise NotImplementedError

    @classmethod
    def name(cls, params: Any) -> str:
        """Hook: the transform's name on screen with these `Params`."""
        return cls.title

    @classmethod
    def in_training(cls, params: Any) -> InTraining | str:
        """Hook: `training` with these `Params`."""
        return cls.training

    def image_width(self, d: int) -> int:
        """Hook: the width of the image of d dimensions; `InputError` as in `fit`."""
        return d

    def affine(self) -> Affine | None:
        """A and b of the default `apply`; None for a transform with its own, unless it also defines this."""
        arrays = self.learnt.arrays
        if type(self).apply is not CataloguedTransform.apply:
            return None
        matrix = arrays.get("matrix", np.eye(self._width())) * arrays.get("scale", 1.0)
        offset = arrays.get("offset", np.zeros(matrix.shape[1]))
        return Affine(matrix, offset - arrays["mean"] @ matrix if "mean" in arrays else offset)

    def __getattr__(self, name: str) -> int:
        """One of the `COUNTS` of the fit."""
        if name in type(self).COUNTS:
            return self.learnt.counts[name]
        raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")

    @property
    def learnt(self) -> Learnt:
        if self._learnt is None:
            raise InputError(f"{self.slug} is not fitted yet: call fit(points) first")
        return self._learnt

    def _fit(self, x: NDArray[np.float64], eps: float, groups: Groups | None = None) -> None:
        learnt = self.learn(x, eps, **self._needed(groups))
        arrays = {name: np.ascontiguousarray(value, dtype=np.float64) for name, value in learnt.arrays.items()}
        self._learnt = Learnt(arrays, learnt.counts, learnt.notes)

    def _map(self, x: Any, groups: Groups | None = None) -> Any:
        arrays: dict[str, Any] = dict(self.learnt.arrays)
        if is_tensor(x):
            import torch

            arrays = {name: torch.from_numpy(value).to(x.dtype).to(x.device) for name, value in arrays.items()}
        return self.apply(x, arrays, **self._needed(groups))

    def _needed(self, groups: Groups | None) -> dict[str, Any]:
        if self.needs != "groups":
            return {}
        if groups is None:
            raise InputError(f"{self.slug} needs the group of each row, such as its language", field="groups")
        return {"groups": groups}

    def _width(self) -> int:
        for name, letters in self.ARRAYS.items():
            if "d" in letters:
                return int(self.learnt.arrays[name].shape[letters.index("d")])
        raise AssertionError(f"{self.slug} learns no array of width d")


def _checked_groups(groups: Any, n: int) -> Groups | None:
    """Codes for n points; `InputError` (field `groups`) if they are none."""
    if groups is None:
        return None
    codes = np.asarray(groups)
    if codes.shape != (n,) or not np.issubdtype(codes.dtype, np.integer) or (n and codes.min() < -1):
        raise InputError(f"groups must be {n} whole numbers of at least -1, one for each point", field="groups")
    return codes.astype(np.int64)


def _checked(x: NDArray[np.float64]) -> NDArray[np.float64]:
    if x.size:
        _check_size(max(float(x.max()), -float(x.min())))
    return x


def _check_size(largest: float) -> None:
    if largest > LARGEST:
        raise InputError(f"points must lie within ±{LARGEST:.0e}, got an entry of size {largest:.3g}")


def _check_width(actual: int, width: int) -> None:
    if actual != width:
        raise InputError(f"points must have {width} dimensions as the fit set had, got {actual}")
