"""The papers' training recipes as settings of a run: schedule, warm-up, weight decay, epochs, early stopping, selection.

Settings that a paper does not give keep our default and are listed in `notes`. Recipes do not include method parameters; each
parameter lists the paper's search range (`sweep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isoviz.errors import named


@dataclass(frozen=True)
class Recipe:
    """One paper's training setup.

    Attributes:
        slug, title: names on the command line and on screen.
        settings: fields of `RunConfig`.
        seeds: number of seeds in the paper.
        notes: its search ranges, missing settings and differences between text and code.
    """

    slug: str
    title: str
    settings: Mapping[str, Any] = field(repr=False)
    seeds: int
    notes: tuple[str, ...]


_ALL = (
    Recipe(
        slug="isolayer",
        title="IsoLayer (Attieh et al. 2023)",
        settings={"batching": "shuffled", "early_stopping": "primary:3", "select": "best"},
        seeds=5,
        notes=(
            "AdamW, and early stopping on the task's metric. Learning rate, batch size, epochs and patience are not given.",
            "The paper holds out 30 % of the training rows for early stopping; here this is a setting of the layer.",
        ),
    ),
    Recipe(
        slug="istar",
        title="I-STAR (Rudman & Eickhoff 2024)",
        settings={
            "batching": "shuffled",
            "schedule": "constant",
            "warmup_ratio": 0.0,
            "learning_rate": 3e-5,
            "batch_size": 32,
            "epochs": 3,
            "grad_accum": 1,
            "max_length": 256,
        },
        seeds=5,
        notes=(
            "Searched: learning rate 1e-5, 3e-5, 5e-5; batch 8, 16, 32; epochs 3, 4, 5.",
            "The text accumulates gradients over two batches; the code does not.",
        ),
    ),
    Recipe(
        slug="isobn",
        title="IsoBN (Zhou et al. 2021)",
        settings={
            "batching": "shuffled",
            "schedule": "linear",
            "warmup_ratio": 0.06,
            "weight_decay": 0.0,
            "learning_rate": 2e-5,
            "batch_size": 32,
            "epochs": 10,
            "max_length": 256,
            "early_stopping": "primary:3",
            "select": "best",
        },
        seeds=5,
        notes=(
            "Searched: learning rate 1e-5, 2e-5, 5e-5; batch 16, 32. Patience is not given.",
            "Weight decay and length come from the authors' code, which has no early stopping.",
        ),
    ),
    Recipe(
        slug="calibration",
        title="Isotropy calibration (GLUE, BERT and DistilBERT)",
        settings={
            "batching": "shuffled",
            "schedule": "constant",
            "warmup_ratio": 0.0,
            "learning_rate": 2e-5,
            "batch_size": 32,
            "epochs": 3,
        },
        seeds=3,
        notes=("MRPC and WNLI: 5 epochs. RoBERTa: learning rate 1e-5. For BART see its own recipe.",),
    ),
    Recipe(
        slug="calibration-bart",
        title="Isotropy calibration (BART and mBART)",
        settings={
            "batching": "shuffled",
            "schedule": "polynomial",
            "learning_rate": 3e-5,
            "batch_size": 48,
            "epochs": 5,
        },
        seeds=3,
        notes=("Warm-up is not given.",),
    ),
)
RECIPES: Mapping[str, Recipe] = {recipe.slug: recipe for recipe in _ALL}


def get(slug: str) -> Recipe:
    """The recipe with this name; `InputError` with the allowed names if there is none."""
    return named(RECIPES, slug, "recipe")
