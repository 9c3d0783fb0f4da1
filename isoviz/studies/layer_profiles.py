"""Layer profiles of finished runs for some figures: measures of every layer, from the saved weights.

Measured once after the run, and stored in its folder.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from isoviz.errors import IsoVizError
from isoviz.studies.records import PROFILE, LayerProfile, RunRecord
from isoviz.studies.study import Progress

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.models.views import Pooling, Views
    from isoviz.runs.store import Store

MOST_ROWS: Final = 1_000
"""Most validation rows, and training rows for Σ_S, because TwoNN compares all pairs."""


def complete(store: Store, runs: Sequence[RunRecord], progress: Progress) -> list[RunRecord]:
    """The records with a layer profile each, measured and saved where there is none; a run whose weights are gone stays without."""
    completed = []
    for number, run in enumerate(runs):
        if run.finished and run.layers is None:
            progress(number / len(runs), f"measuring the layers of run {run.row.id}")
            with contextlib.suppress(IsoVizError):  # its weights, model or data are not on this machine (any more)
                profile = measure(store, run)
                path = store.path_of(run.row.id) / PROFILE
                partial = path.with_suffix(".partial")
                partial.write_text(profile.model_dump_json(), encoding="utf-8")
                partial.replace(path)
                run = replace(run, layers=profile)
        completed.append(run)
    return completed


def unmeasured(runs: Sequence[RunRecord]) -> list[str]:
    """Finished runs that have no profile yet, by id."""
    return [run.row.id for run in runs if run.finished and run.layers is None]


def measure(store: Store, run: RunRecord) -> LayerProfile:
    """Read the run's validation and training rows with its encoder. Loads torch; raises like `isoviz.exploring.encoders.load_run`."""
    import tempfile

    import numpy as np

    from isoviz import metrics, tasks
    from isoviz.exploring import encoders
    from isoviz.metrics.scores import REPORTED_ZETA
    from isoviz.models.extract import layer_views
    from isoviz.models.sources import ModelSource

    config = run.config
    task = tasks.get(config.task, config.own)
    rows = tasks.load(task, config.data, config.direction, max_train=config.max_train, max_eval=config.max_eval)
    loaded = encoders.load_run(f"{encoders.RUN}{run.row.id}", store)
    with tempfile.TemporaryDirectory(prefix="isoviz-layers-") as folder:
        encoder: Any = loaded.model.network.base_model
        encoder.save_pretrained(folder)
        loaded.tokenizer.save_pretrained(folder)
        source = ModelSource(run.row.id, "local", folder, run.row.id)

        def read(frame: pd.DataFrame, *poolings: Pooling) -> Views:
            columns = [frame[column].tolist()[:MOST_ROWS] for column in task.inputs]
            return layer_views(
                source,
                encoders.prefixed(columns, loaded.before),
                poolings=poolings,
                max_length=config.max_length,
                max_tokens_per_layer=1,
                seed=config.seed,
            )

        views = read(rows.validation, "cls", "tokens")
        training = read(rows.train, "tokens")
    layers = tuple(range(views.depth + 1))
    twonn, star = [], []
    for layer in layers:
        with warnings.catch_warnings():
            # the embedding output has one [CLS] vector for all texts: no dimension, as expected
            warnings.simplefilter("ignore")
            twonn.append(float(metrics.twonn(views.points(layer, "cls"))))
        of_layer, of_training = (part.tokens[layer].stream.sample().true_covariance for part in (views, training))
        mixed = (1 - REPORTED_ZETA) * of_layer + REPORTED_ZETA * of_training
        star.append(float(metrics.isoscore_from_covariance(mixed)))
    last = views.tokens[views.depth].stream.sample()
    return LayerProfile(
        layers=layers,
        twonn=tuple(value if np.isfinite(value) else None for value in twonn),
        isoscore_star=tuple(value if np.isfinite(value) else None for value in star),
        mean_activation=tuple(float(value) for value in last.mean),
        rows=views.rows,
    )
