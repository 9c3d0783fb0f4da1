"""`isoviz measure`: every measure of an array file or of a model on a task."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from isoviz.commands.output import print_json
from isoviz.errors import InputError

LABELS = {
    "isoscore": "IsoScore",
    "isoscore_unbiased": "IsoScore, unbiased",
    "mean_cosine": "mean cosine",
    "participation_ratio": "participation ratio",
    "effective_rank": "effective rank",
    "twonn": "TwoNN dimension",
}


def run(options: argparse.Namespace) -> int:
    """Measure and print; 0 when done."""
    points, cloud = _from_file(options.embeddings) if options.embeddings else _from_model(options)
    values = _describe(points)
    if options.json:
        print_json({"cloud": cloud, **values})
        return 0
    print(f"{cloud['name']}: n = {values['n']} points, d = {values['d']} dimensions")
    for name, label in LABELS.items():
        value = values[name]
        print(f"  {label:<20} {'undefined' if value is None else f'{value:.4f}'}")
    if values["ev"]:
        print(f"  {'EV_1, EV_2, EV_3':<20} " + ", ".join(f"{value:.4f}" for value in values["ev"][:3]))
    for warning in values["warnings"]:
        print(f"note: {warning}", file=sys.stderr)
    return 0


def _describe(points: np.ndarray) -> dict[str, Any]:
    from isoviz import metrics

    try:
        return dict(metrics.describe(points))
    except ValueError as error:
        raise InputError(f"embeddings: {error}", field="embeddings") from None


def _from_file(name: str) -> tuple[np.ndarray, dict[str, Any]]:
    path = Path(name)
    if not path.is_file():
        raise InputError(f"embeddings: no file '{name}'", field="embeddings")
    try:
        points = np.load(path, allow_pickle=False)
    except (ValueError, OSError) as error:
        raise InputError(f"embeddings: '{name}' is not a numpy .npy array: {error}", field="embeddings") from None
    if not isinstance(points, np.ndarray):
        raise InputError(
            f"embeddings: '{name}' holds several arrays; give a .npy file with one (points, dimensions)",
            field="embeddings",
        )
    return points, {"name": path.name}


def _from_model(options: argparse.Namespace) -> tuple[np.ndarray, dict[str, Any]]:
    from isoviz import tasks
    from isoviz.models import sources

    task = tasks.get(options.task)
    source = sources.resolve(options.model)
    rows = tasks.load(task, options.data)
    frame = {"train": rows.train, "validation": rows.validation}.get(options.split)
    if frame is None:
        raise InputError(f"split: no split '{options.split}' (allowed: train, validation)", field="split")
    frame = frame.iloc[: options.max_eval]
    from isoviz.models.extract import embed

    texts = [frame[column].tolist() for column in task.columns]
    points = embed(source, texts, pooling=options.pooling, layer=options.layer, max_length=options.max_length)
    layer = "last layer" if options.layer is None else f"layer {options.layer}"
    cloud = {
        "name": f"{options.model} on {options.task} ({options.split}), {layer}, {options.pooling}",
        "model": options.model,
        "task": options.task,
        "split": options.split,
        "layer": options.layer,
        "pooling": options.pooling,
        "model_fingerprint": source.fingerprint,
        "data_fingerprint": rows.fingerprint,
    }
    return points, cloud
