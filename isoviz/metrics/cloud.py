"""Input and output shared by all metrics: validated clouds in, floats or tensors out, and two warnings."""

from __future__ import annotations

import mmap
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isoviz import devices
from isoviz.errors import InputError

if TYPE_CHECKING:
    import torch

Points: TypeAlias = "ArrayLike | torch.Tensor"
"""A cloud: anything numpy converts to an (n, d) array, or a torch tensor of that shape."""
Value: TypeAlias = "float | torch.Tensor"
Array: TypeAlias = "NDArray[np.float64] | torch.Tensor"

_MAPPED_AT_ONCE = 64 * 2**20
"""Bytes of a mapped file that `blocks` keeps in memory."""


class UndefinedWarning(UserWarning):
    """The metric is undefined on this cloud; `nan` was returned."""


class SmallSampleWarning(UserWarning):
    """Fewer points than dimensions: the sample spectrum is strongly biased, and so are values computed from it."""


class Estimate(NamedTuple):
    """A number or a curve, or `nan` with the reason; `note` is a caveat on the value ("leaves out 3 zero vectors"), `p` its p value
    as a test statistic."""

    value: Any
    problem: str | None = None
    note: str = ""
    p: float | None = None


def undefined(problem: str) -> Estimate:
    return Estimate(float("nan"), problem)


def too_few(n: int) -> str:
    return f"it needs at least 2 points, got {n}"


def warn_undefined(metric: str, problem: str, depth: int = 1) -> None:
    """Warn at the line that called the public function, `depth` calls above."""
    warnings.warn(f"{metric} is undefined: {problem}", UndefinedWarning, stacklevel=depth + 2)


def warn_if_small(metric: str, n: int, d: int, depth: int = 1) -> None:
    """Warn if n < d, at the line that called the public function, `depth` calls above."""
    if n < d:
        message = f"{metric} from n = {n} points in d = {d} dimensions: too few points for a reliable spectrum"
        warnings.warn(message, SmallSampleWarning, stacklevel=depth + 2)


def is_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def sum_dtype(device: torch.device) -> torch.dtype:
    """float64, on devices that compute in it."""
    import torch

    return torch.float64 if devices.has_float64(device.type) else torch.float32


def working_dtype(points: torch.Tensor) -> torch.dtype:
    """In which a tensor is computed: float64 stays, float32 and the half precisions are float32, integers become float64."""
    import torch

    if points.dtype == torch.float64:
        return torch.float64
    return torch.float32 if points.is_floating_point() else sum_dtype(points.device)


def blocks(points: NDArray[Any], rows: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks of at most `rows` rows of an (n, d) array, each with the index of its first row. For a mapped file the pages
    already read are released, so that a file larger than memory is read in bounded memory.
    """
    mapped = getattr(points, "_mmap", None)
    release = getattr(mmap, "MADV_DONTNEED", None)
    unreleased = 0
    for start in range(0, len(points), rows):
        block = points[start : start + rows]
        yield start, block
        unreleased += block.nbytes
        if mapped is not None and release is not None and unreleased > _MAPPED_AT_ONCE:
            mapped.madvise(release)
            unreleased = 0


def draw(count: int, most: int, seed: int = 0) -> NDArray[np.int64]:
    """Ascending indices of at most `most` of `count` rows: all, or a random choice with the seed."""
    if count <= most:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, most, replace=False, shuffle=False))


def check_shape(shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2 or shape[1] == 0:
        raise InputError(f"{name} must have shape (points, dimensions) with at least one dimension, got {tuple(shape)}")


def float64_matrix(points: Points, name: str = "points") -> NDArray[np.float64]:
    """The cloud as a finite float64 array (n, d). It may be the caller's own array, so never modify it.

    Raises:
        InputError: (a ValueError) not two-dimensional, no dimension, not numbers, or non-finite.
    """
    raw: Any = points
    if is_tensor(raw):
        raw = raw.detach().cpu().double().numpy()
    else:
        try:
            raw = np.asarray(raw)
        except ValueError as error:  # rows of different lengths
            raise InputError(f"{name} must be an array of shape (points, dimensions): {error}") from error
    check_shape(raw.shape, name)
    try:
        matrix = raw.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers, got an array of type {raw.dtype}") from error
    # One sum finds nan and inf without a temporary array. It may overflow on finite entries, hence the second check.
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(matrix.sum())
    if suspicious and not np.isfinite(matrix).all():
        count = int(matrix.size - np.isfinite(matrix).sum())
        raise InputError(f"{name} must be finite, got {count} of {matrix.size} entries that are nan or infinite")
    return matrix


def resolution(points: Points) -> float:
    """Machine epsilon of the input's number type (float32's for half precision). A cloud that spreads less than this around its
    mean is collapsed: the spread is only rounding error.
    """
    dtype = str(getattr(points, "dtype", "float64"))
    return float(np.finfo(np.float32 if dtype.endswith(("float32", "float16")) else np.float64).eps)


def like(points: Points, value: float | NDArray[Any]) -> Any:
    """`value` in the type of the input: unchanged for numpy, a tensor on the same device for a tensor."""
    if not is_tensor(points) or is_tensor(value):
        return value
    import torch

    tensor: Any = points
    array = np.asarray(value)
    dtype = working_dtype(tensor) if array.dtype.kind == "f" else torch.int64
    return torch.as_tensor(array, device="cpu").to(dtype=dtype).to(tensor.device)


def answer(metric: str, points: Points, estimate: Estimate, depth: int = 1) -> Any:
    """What a public function returns: the estimate in the type of the input, with a warning if it is undefined. An undefined
    number of a tensor stays connected to the graph. `depth`: calls from the public function to this one."""
    if estimate.problem:
        warn_undefined(metric, estimate.problem, depth + 1)
    if not is_tensor(points) or np.ndim(estimate.value):
        return like(points, estimate.value)
    tensor: Any = points
    value = tensor.sum() * float("nan") if estimate.problem else like(points, estimate.value)
    return value.to(working_dtype(tensor))


def symmetric_matrix(cov: Points, name: str) -> NDArray[np.float64]:
    """A validated covariance in float64: square, finite, symmetric and positive semidefinite up to round-off. The tolerance is
    1e-5 of its Frobenius norm, enough for a covariance summed in float32. Negative eigenvalues are refused because a score from
    singular values would silently use |λ|.
    """
    matrix = float64_matrix(cov, name)
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"{name} must be square (dimensions, dimensions), got {matrix.shape}")
    biggest = float(np.abs(matrix).max())
    if biggest == 0:
        return matrix
    unit = matrix / biggest
    allowed = 1e-5 * float(np.linalg.norm(unit))
    asymmetry = float(np.abs(unit - unit.T).max())
    if asymmetry > allowed:
        difference = asymmetry * biggest
        raise InputError(f"{name} must be symmetric, got entries that differ by {difference:.3g} from their mirror")
    unit = (unit + unit.T) / 2
    unit[np.diag_indices_from(unit)] += allowed
    try:
        np.linalg.cholesky(unit)  # takes a sixth of the time of the eigenvalues
    except np.linalg.LinAlgError:
        smallest = (float(np.linalg.eigvalsh(unit)[0]) - allowed) * biggest
        raise InputError(f"{name} must be positive semidefinite, got a smallest eigenvalue of {smallest:.3g}") from None
    return matrix
