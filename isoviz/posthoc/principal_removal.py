"""Removal of directions: that of the mean, those of largest variance (all-but-the-top), and the same inside each cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.metrics.moments import centre
from isoviz.posthoc.directions import principal_axes
from isoviz.posthoc.factored import FactoredCloud
from isoviz.posthoc.protocol import Affine, CataloguedTransform, Learnt, Paper, Params, parameter


class MeanRemoval(CataloguedTransform):
    """y = ‖x‖ r/‖r‖ with r = x − (x·μ̂)μ̂, where μ̂ is the unit vector along the mean of the fit set.

    Learnt: `direction` (d,), μ̂, or zeros if the mean is within the rounding of the coordinates; then y = x. `floor` (1,): a
    point whose r is at most this fraction of its length lies on the line of the mean and maps to 0, because its remainder has
    no direction. `removed`: the number of directions removed, 1, or 0 if the mean is zero.
    """

    slug = "mean_removal"
    title = "Mean removal"
    summary = "Removes from every point its component along the training mean, then restores the point's length."
    equation = (
        r"y = \lVert x \rVert \, r / \lVert r \rVert,\quad r = x - (x \cdot \hat\mu)\,\hat\mu,\quad "
        r"\hat\mu = \mu / \lVert \mu \rVert"
    )
    paper = Paper("Ren et al. 2025", entries()["ren2025correcting"])
    traps = (
        "Points on the line of the mean map to 0; points near it are stretched a lot, including their noise.",
        "A cloud with mean 0 does not change, because there is no direction to remove; see `removed`.",
        "Only the direction of the mean is removed: the image is not centred, and it spans one dimension less.",
    )
    ARRAYS = {"direction": "d", "floor": "k"}
    COUNTS = ("removed",)
    fits_on = "mean"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        _, mean = centre(x)
        floor = max(eps, x.shape[1] * float(np.finfo(np.float64).eps))
        removed = float(np.abs(mean).max()) > floor * float(np.abs(x).max())
        unit = mean / (np.abs(mean).max() or 1.0)  # so that squares neither overflow nor underflow
        direction = unit / np.linalg.norm(unit) if removed else np.zeros_like(mean)
        notes = () if removed else ("nothing is removed, because the mean is 0",)
        return Learnt({"direction": direction, "floor": np.array([floor])}, {"removed": int(removed)}, notes)

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        direction = learnt["direction"]
        remainder = x - (x @ direction)[:, None] * direction
        before, after = (x * x).sum(1), (remainder * remainder).sum(1)
        on_line = after <= learnt["floor"] ** 2 * before
        stretch = ((before + on_line) / (after + on_line)) ** 0.5  # avoids 0/0, which has no gradient
        return remainder * (stretch * ~on_line)[:, None]


class AllButTheTopParams(Params):
    remove: int | None = parameter(
        None,
        label="Directions removed",
        symbol="D",
        help=(
            "Number of top directions (those with the most variance) to remove. Empty: a hundredth of the dimensions, at "
            "least 1."
        ),
        source="Mu & Viswanath 2018, algorithm 1 (D about d/100)",
        ge=0,
        slider=(0, 40, 1),
        start=1,
    )
    literal: bool = parameter(
        False,
        label="From the uncentred points",
        help=(
            "Project x instead of x − μ onto the removed directions: the covariance is the same, but a constant vector "
            "remains."
        ),
        source="Mu & Viswanath 2018, algorithm 1 taken literally",
    )


class AllButTheTop(CataloguedTransform):
    """y = x̃ − Σ_{i≤D} (u_i·x̃)u_i with x̃ = x − μ.

    Learnt: `mean` (d,), `directions` (d, r), r = min(D, rank): beyond the rank a direction is arbitrary. `removed`: r.
    """

    slug = "all_but_the_top"
    title = "All-but-the-top"
    summary = "Centres the cloud and removes its few directions of largest variance."
    equation = r"y = \tilde x - \sum_{i \le D} (u_i \cdot \tilde x)\, u_i,\quad \tilde x = x - \mu"
    paper = Paper("Mu & Viswanath 2018", entries()["mu2018allbutthetop"])
    Params = AllButTheTopParams
    params: AllButTheTopParams
    traps = (
        "On a cloud without dominant directions IsoScore falls, because removed directions count as dimensions without "
        "variance.",
        "If the D-th and the next direction have equal variance, the choice between them is arbitrary.",
        "The literal form leaves a constant vector in every point; it changes cosines but not IsoScore.",
    )
    training = "it removes directions of a finished cloud; an encoder in training would develop new dominant directions"
    ARRAYS = {"mean": "d", "directions": "dr"}
    COUNTS = ("removed",)
    coordinates = "principal"
    fits_on = "sample"

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        axes = principal_axes(x, eps)
        directions = axes.leading(self._count(x.shape[1]))
        removed = directions.shape[1]
        notes = self._notes(removed, x.shape[1])
        return Learnt({"mean": axes.mean, "directions": directions}, {"removed": removed}, notes)

    def _notes(self, removed: int, d: int) -> tuple[str, ...]:
        wanted = self._count(d)
        return (f"only {removed} of {wanted} directions to be removed hold any variance",) if removed < wanted else ()

    def _count(self, d: int) -> int:
        """D in d dimensions."""
        count = max(1, round(d / 100)) if self.params.remove is None else self.params.remove
        if count > d:
            raise InputError(f"remove must be at most {d}, the dimensions of the points, got {count}")
        return count

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        directions = learnt["directions"]
        centred = x - learnt["mean"]
        source = x if self.params.literal else centred
        return centred - (source @ directions) @ directions.T

    def act(self, cloud: FactoredCloud) -> FactoredCloud:
        std, count = cloud.principal_std, self._count(cloud.width)
        rank = int(np.count_nonzero(std))
        removed = np.argsort(-std, kind="stable")[: min(count, rank)]
        factors = np.ones(len(std))
        factors[removed] = 0.0
        mean = np.zeros(cloud.width)
        if self.params.literal:
            directions = cloud.directions[:, removed]
            mean = -(cloud.mean @ directions) @ directions.T
        notes = (*cloud.notes, *self._notes(len(removed), cloud.width))
        return replace(
            cloud.scaled(factors, mean=mean), only_rounding=cloud.only_rounding or count >= rank, notes=notes
        )

    def affine(self) -> Affine:
        mean, directions = self.learnt.arrays["mean"], self.learnt.arrays["directions"]
        matrix = np.eye(len(mean)) - directions @ directions.T
        return Affine(matrix, -mean if self.params.literal else -mean @ matrix)


class ClusterBasedParams(Params):
    n_clusters: int = parameter(
        27,
        label="Clusters",
        symbol="k",
        help="Number of k-means clusters.",
        source="Rajaee & Pilehvar 2021, the authors' notebook for BERT",
        ge=1,
        slider=(1, 50, 1),
        start=5,
    )
    remove: int = parameter(
        12,
        label="Directions removed",
        symbol="D",
        help="Number of top directions (those with the most variance) to remove from each cluster.",
        source="Rajaee & Pilehvar 2021, the authors' notebook for BERT",
        ge=0,
        slider=(0, 40, 1),
        start=2,
    )
    seed: int = parameter(
        0,
        label="Seed",
        help="Sets the starting point of k-means.",
        source="our addition: the authors' code sets no seed",
        ge=0,
        le=2**31 - 1,
    )


class ClusterBased(CataloguedTransform):
    """Finds clusters by k-means and removes from each point its cluster's mean and top directions.

    New points belong to the cluster with the nearest centroid. Cluster means are not added back, as in the authors' code.

    Learnt, with c clusters: `centroids` (c, d) relative to `origin` (d,), `means` (c, d), `directions` (c, d, r), where a
    cluster with fewer than r directions to remove has columns of zeros. A cluster of m points spans at most m − 1 directions;
    all fit points of a cluster that spans at most D directions become zero (`flattened` counts these clusters).
    """

    slug = "cluster_based"
    title = "Cluster-based"
    summary = "Splits the cloud into clusters, centres each one and removes its directions of largest variance."
    equation = (
        r"y = \tilde x - \sum_{i \le D} (u^{(c)}_i \cdot \tilde x)\, u^{(c)}_i,\quad \tilde x = x - \mu_c,\; c = c(x)"
    )
    paper = Paper("Rajaee & Pilehvar 2021", entries()["rajaee2021cluster"])
    Params = ClusterBasedParams
    params: ClusterBasedParams
    traps = (
        "All points of a cluster with at most D + 1 points become zero; `flattened` counts these clusters.",
        "Cluster means are not added back: if the clusters match the classes, the transform removes what separates them.",
        "The map is not affine: it jumps at the border between clusters. It also depends on the k-means seed.",
    )
    training = "its clusters come from a finished cloud and would have to be recomputed at every step"
    ARRAYS = {"origin": "d", "centroids": "cd", "means": "cd", "directions": "cdr"}
    COUNTS = ("flattened", "clusters")

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        clusters, remove = self.params.n_clusters, self.params.remove
        n, d = x.shape
        if remove > d:
            raise InputError(f"remove must be at most {d}, the dimensions of the points, got {remove}")
        distinct = len(np.unique(x, axis=0)) if clusters > 1 else 1
        if clusters > distinct:
            raise InputError(f"n_clusters must be at most {distinct}, the number of distinct points, got {clusters}")
        centred, origin = centre(x)
        centroids = _centroids(centred, clusters, self.params.seed)
        labels = _nearest(centred, centroids)
        occupied = np.unique(labels)  # rounding can leave a centroid without points
        means = np.empty((len(occupied), d))
        directions = np.zeros((len(occupied), d, min(remove, d, n - 1)))
        flattened = 0
        for index, label in enumerate(occupied):
            axes = principal_axes(x[labels == label], eps)
            leading = axes.leading(remove)
            means[index] = axes.mean
            directions[index, :, : leading.shape[1]] = leading
            flattened += axes.rank <= remove
        arrays = {"origin": origin, "centroids": centroids[occupied], "means": means, "directions": directions}
        note = f"all rows of {flattened} of {len(occupied)} clusters become 0, because they span too few directions"
        counts = {"flattened": flattened, "clusters": len(occupied)}
        return Learnt(arrays, counts, (note,) if flattened else ())

    def apply(self, x: Any, learnt: dict[str, Any]) -> Any:
        labels = _nearest(x - learnt["origin"], learnt["centroids"])
        image = x - learnt["means"][labels]
        for cluster, directions in enumerate(learnt["directions"]):
            rows = labels == cluster
            members = image[rows]
            image[rows] = members - (members @ directions) @ directions.T
        return image


def _centroids(centred: NDArray[np.float64], count: int, seed: int) -> NDArray[np.float64]:
    if count == 1:
        return np.zeros((1, centred.shape[1]))
    from sklearn.cluster import KMeans

    unit = float(np.abs(centred).max())  # keeps the squares in k-means within range
    # its warning about too few distinct clusters is not suppressed: filters are process-wide, and What-if fits in threads
    fitted = KMeans(n_clusters=count, n_init=1, random_state=seed).fit(centred / unit)
    centroids: NDArray[np.float64] = fitted.cluster_centers_ * unit
    return centroids


def _nearest(x: Any, centroids: Any) -> Any:
    """argmin ‖x − c‖² over the centroids, (n,), for numpy and torch; ‖x‖² does not depend on the centroid."""
    return (0.5 * (centroids * centroids).sum(1) - x @ centroids.T).argmin(1)
