"""Bundled data: tiny pretrained models, the rows of the demo tasks, and the scores of simple approaches on them. The scripts
that produce the data are in `factory/` in the source. Does not import torch.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RECORD = FOLDER / "baselines.json"
DEMO_RECORD = FOLDER / "demo.json"
PRESETS_RECORD = FOLDER / "presets.json"
"""The recorded results of each preset (`factory/record_presets.py`)."""
EXAMPLES = FOLDER / "examples"
"""Recorded runs, read-only (`factory/record_examples.py`; `isoviz.runs.examples` reads them)."""
ENCODERS = FOLDER / "encoders.json"
"""Encoders recorded on demo/everyday (`factory/reference_encoders.py`)."""
EXAMPLE = "example-"
"""Prefix of the ids of example runs and of the keys of results computed from them."""
_MODELS = {"demo/tiny-bert": FOLDER / "tiny-bert", "demo/tiny-bart": FOLDER / "tiny-bart"}


def bundled_models() -> tuple[str, ...]:
    """Slugs of the bundled models."""
    return tuple(_MODELS)


def bundled_model_dir(slug: str) -> Path:
    """The transformers directory of a bundled model; ValueError for an unknown slug."""
    if slug not in _MODELS:
        raise ValueError(f"unknown bundled model {slug!r}; allowed: {', '.join(_MODELS)}")
    return _MODELS[slug]


def rows_dir(slug: str) -> Path:
    """The folder with a demo task's rows, one Parquet file per split."""
    return FOLDER / "rows" / slug.removeprefix("demo/")


def baselines(slug: str) -> dict[str, Any]:
    """The recorded scores (the task's primary metric) on the validation rows, trained on all training rows.

    Keys: `metric`; `rows` (split → count); `majority`, `bag_of_words`, `copied` and `word_by_word` (floats, absent if they do
    not apply), `random_weights` and `pretrained` ({"mean", "seeds": {seed: score}, "by_phenomenon", "seconds"}), `model`,
    `recipe` (the fine-tuning configuration), `bag_of_words_by_phenomenon`. Empty for other tasks, and before a task's first
    recording.
    """
    return _record().get(slug, {})


def recorded_pace(slug: str) -> tuple[float, int] | None:
    """Seconds per training row and epoch in the recorded pretrained runs, including measuring, and the number of training rows;
    None without a recording.
    """
    record = baselines(slug)
    if not record:
        return None
    rows = int(record["rows"]["train"])
    return float(record["pretrained"]["seconds"]) / (rows * record["recipe"]["epochs"]), rows


@functools.cache
def recorded_demo() -> dict[str, Any]:
    """The recorded times of the "60-second demo"; empty before the first recording.

    Keys: `plan` (of the preset), `seconds` (from launch to the end of the last run, the median of `repeats`), `cores`, `processor`,
    `others` (share of processor time used by other processes), `runs` (per method `seconds`, `train_seconds`, `score`, ...),
    `versions`, `date`.
    """
    return json.loads(DEMO_RECORD.read_text(encoding="utf-8")) if DEMO_RECORD.exists() else {}


def reference_encoders() -> list[dict[str, Any]]:
    """Recorded encoders: name, weights, licence, fingerprint, pooling, n, d, noise_floor and auc, each with its 95 % interval."""
    recorded: list[dict[str, Any]] = json.loads(ENCODERS.read_text(encoding="utf-8"))
    return recorded


def mean(value: Any) -> float | None:
    """The value itself, or the mean over the seeds of a record; None if it is undefined."""
    average = value["mean"] if isinstance(value, dict) else value
    return None if average is None else float(average)


@functools.cache
def _record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["tasks"] if RECORD.exists() else {}
