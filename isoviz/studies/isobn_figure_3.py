"""Figure 3 of IsoBN: a real correlation matrix, and those that batch normalisation and IsoBN assume in its place."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

from isoviz.methods.protocol import Paper
from isoviz.studies.inputs import Inputs, NamedModel
from isoviz.studies.isobn_clouds import POOLER, encode
from isoviz.studies.isobn_figures import PAPER, loaded
from isoviz.studies.protocol import Claim, ComputedStudy, Judgement, Progress
from isoviz.studies.result import Axis, Figure, Matrix, Panel, Result, Row, Table, provenance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUPED = 0.5
"""Dimensions with at least this mean |ρ| form a group."""


def groups(correlation: NDArray[np.float64]) -> NDArray[np.int64]:
    """Group of each dimension, (d,), by average linkage on 1 − |ρ|, cut where the mean |ρ| falls below `GROUPED`."""
    import numpy as np
    from scipy.cluster import hierarchy
    from scipy.spatial.distance import squareform

    if len(correlation) < 2:
        return np.zeros(len(correlation), dtype=np.int64)
    distance = np.clip(1.0 - correlation, 0.0, 1.0)
    np.fill_diagonal(distance, 0.0)
    tree = hierarchy.linkage(squareform(distance, checks=False), method="average")
    return np.asarray(hierarchy.fcluster(tree, 1.0 - GROUPED, criterion="distance"), dtype=np.int64)


def assumed(correlation: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Name → |ρ|: real, as assumed by batch normalisation, and as assumed by IsoBN."""
    import numpy as np

    of_group = groups(correlation)
    return {
        "real": correlation,
        "batch normalisation": np.eye(len(correlation)),
        "IsoBN": (of_group[:, None] == of_group).astype(np.float64),
    }


def distance(matrix: NDArray[np.float64], real: NDArray[np.float64]) -> float:
    """Root-mean-square difference over distinct dimensions."""
    import numpy as np

    above = np.triu_indices(len(real), 1)
    return float(np.sqrt(np.mean((matrix[above] - real[above]) ** 2))) if len(above[0]) else 0.0


def blocks_fit_better(result: Result) -> Judgement:
    """The blocks' distance from the real matrix against the identity's."""
    rows = result.tables[0].rows
    better = [float(row[5] or 0) < float(row[4] or 0) for row in rows]
    distances = "; ".join(f"{row[0]}, {row[1]}: {row[5]:.3f} against {row[4]:.3f}" for row in rows)
    sentence = f"Distance of IsoBN's blocks from the real matrix against that of the identity: {distances}."
    return ("held" if all(better) else "not held" if not any(better) else "cannot tell"), sentence


def nearly_block_diagonal(result: Result) -> Judgement:
    """Do the groups hold most dimensions, and do the blocks leave less than a tenth of the correlation to explain?"""
    rows = result.tables[0].rows
    fits = [float(row[5] or 0) < 0.1 and float(row[3] or 0) > 50 for row in rows]
    fits_by_cloud = "; ".join(f"{row[0]}, {row[1]}: {row[3]:.0f} % of the dimensions are in a group of two or more, distance {row[5]:.3f}"
                     for row in rows)  # fmt: skip
    return ("held" if all(fits) else "not held" if not any(fits) else "cannot tell"), f"{fits_by_cloud}."


class IsoBNFigure3(ComputedStudy):
    """Three matrices in a row for each encoder."""

    slug: ClassVar[str] = "isobn-figure-3"
    title: ClassVar[str] = "Which correlation do the normalisations assume?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figure 3"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "|ρ| of an encoder's first-token vectors before fine-tuning, beside the identity that batch normalisation assumes and the blocks "
        "of ones that IsoBN assumes."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The paper calls the figure an illustration and names neither encoder nor task. Here MRPC, or its demo counterpart.",
        "The paper does not define the groups, because IsoBN never forms them: γ counts a group softly. Here: average linkage, cut where "
        "the mean |ρ| of two groups falls below 0.5.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim("The correlation matrix is nearly block-diagonal.", nearly_block_diagonal),
        Claim("IsoBN's blocks are closer to the real matrix than batch normalisation's identity.", blocks_fit_better),
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "quick": "demo/tiny-bert on demo/paraphrase, 2,000 training rows",
            "full": "bert-base-cased and roberta-large on MRPC, all training rows",
        }
    )
    takes: ClassVar[tuple[str, ...]] = ("model", "tasks", "data")

    def compute(self, scale: str, progress: Progress, inputs: Inputs) -> Result:
        """A row of matrices for each encoder on each task."""
        from isoviz.models import sources

        began = time.perf_counter()
        quick = scale == "quick"
        default_models = ("demo/tiny-bert",) if quick else ("google-bert/bert-base-cased", "FacebookAI/roberta-large")
        models = inputs.models or tuple(NamedModel(name, name) for name in default_models)
        task_slugs = inputs.tasks or (("demo/paraphrase",) if quick else ("glue/mrpc",))
        panels: list[Panel] = []
        rows: list[Row] = []
        prints: dict[str, str] = {}
        notes: list[str] = []
        axis = Axis(label="dimensions, clustered")
        data = list(loaded(task_slugs, inputs.data, 2_000 if quick else None))
        for model in models:
            source = sources.resolve(model.source)
            for task, texts, _ in data:
                encoded = encode(model, source, task, texts, progress)
                prints[model.name] = encoded.fingerprint
                notes += encoded.notes
                cloud = next(
                    (candidate for candidate in encoded.clouds if candidate.tensor == POOLER), encoded.clouds[0]
                )
                matrices = assumed(cloud.correlation)
                for name, matrix in matrices.items():
                    title = cloud.title if name == "real" else name
                    panels.append(Panel(title=title, kind="matrix", x_axis=axis, y_axis=axis, matrix=Matrix.of(matrix)))
                of_group = groups(cloud.correlation).tolist()
                grouped = sum(of_group.count(group) > 1 for group in of_group)
                identity, blocks = (
                    distance(matrices[name], cloud.correlation) for name in ("batch normalisation", "IsoBN")
                )
                share = 100 * grouped / cloud.d
                rows.append([task.title, model.name, len(set(of_group)), share, identity, blocks])
        progress(1.0, "done")
        table = Table(
            title="How far each assumption is from the real matrix",
            header=["task", "encoder", "groups", "% of dimensions in a group of two or more", "distance of the identity",
                    "distance of the blocks"],
            rows=rows,
            notes=["Distance: root-mean-square difference of |ρ| over all pairs of distinct dimensions."],
        )  # fmt: skip
        config = {
            "models": [{"name": name, "fingerprint": mark} for name, mark in prints.items()],
            "tasks": [{"slug": task.slug, "rows": len(texts[0]), "fingerprint": mark} for task, texts, mark in data],
            "grouped": GROUPED,
        }
        return Result(
            title=self.title,
            figures=[
                Figure(
                    title="|ρ|: real, and as assumed by batch normalisation and by IsoBN",
                    place=self.place,
                    columns=3,
                    panels=panels,
                )
            ],
            tables=[table],
            notes=list(dict.fromkeys(notes)),
            provenance=provenance(
                self.slug,
                scale,
                0,
                config,
                ["numpy", "scipy", "torch", "transformers"],
                time.perf_counter() - began,
                inputs.words(),
            ),
        )
