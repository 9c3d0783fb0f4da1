"""The papers' training recipes as settings of a run: schedule, warm-up, weight decay, epochs, early stopping, selection.

What a paper leaves open keeps our default and is named in `notes`. Method parameters are not part of a recipe; the papers'
search ranges are given with each parameter (`sweep`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isoviz.errors import unknown_name


@dataclass(frozen=True)
class Recipe:
    """How one paper trains.

    Attributes:
        slug, title: names for the command line and for people.
        settings: fields of `RunConfig`.
        seeds: how many the paper takes.
        notes: what it searches over, leaves open, or does otherwise in its code.
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
            "AdamW and early stopping by the task's metric; learning rate, batch size, epochs and patience are not given.",
            "It holds 30 % of the training rows out for early stopping; here that is the layer's own setting.",
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
            "The text accumulates gradients over two batches, the code does not.",
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
            "Weight decay and length are the authors' code's, which has no early stopping.",
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
        notes=("MRPC and WNLI: 5 epochs. RoBERTa: learning rate 1e-5. BART: see its own recipe.",),
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
    """The recipe of that name; `InputError` with the allowed names otherwise."""
    if slug not in RECIPES:
        raise unknown_name("recipe", slug, RECIPES, field="recipe")
    return RECIPES[slug]
