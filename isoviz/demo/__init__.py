"""The embedded default: tiny pretrained models, the rows of the demo tasks, and what simple approaches reach on them. Data only; the
scripts that made it lie in `factory/` of the source. No torch here.
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
"""What each preset gave when it was last run as it ships (`factory/record_presets.py`)."""
EXAMPLES = FOLDER / "examples"
"""Recorded runs, read-only (`factory/record_examples.py`; `isoviz.runs.examples` reads them)."""
EXAMPLE = "example-"
"""How the ids of example runs begin, and the keys of results that were computed from them."""
_MODELS = {"demo/tiny-bert": FOLDER / "tiny-bert", "demo/tiny-bart": FOLDER / "tiny-bart"}


def bundled_models() -> tuple[str, ...]:
    """Slugs of the models that come with the package."""
    return tuple(_MODELS)


def bundled_model_dir(slug: str) -> Path:
    """The transformers directory of a bundled model; ValueError for an unknown slug."""
    if slug not in _MODELS:
        raise ValueError(f"unknown bundled model {slug!r}; there are {', '.join(_MODELS)}")
    return _MODELS[slug]


def rows_dir(slug: str) -> Path:
    """The folder of a demo task's rows, one Parquet file per split."""
    return FOLDER / "rows" / slug.removeprefix("demo/")


def baselines(slug: str) -> dict[str, Any]:
    """The recorded scores (the task's primary metric) on the validation rows, trained on all training rows.

    Keys: `metric`; `rows` (split → how many); `majority`, `bag_of_words`, `copied` and `word_by_word` (floats, absent where they
    mean nothing), `random_weights` and `pretrained` ({"mean", "seeds": {seed: score}, "by_phenomenon", "seconds"}), `model`,
    `recipe` (the fine-tuning configuration), `bag_of_words_by_phenomenon`. Empty for other tasks, and before a task's first
    recording.
    """
    return _record().get(slug, {})


def recorded_pace(slug: str) -> tuple[float, int] | None:
    """Seconds per training row and epoch of the recorded pretrained runs, measuring included, and how many training rows there
    are; None without a recording.
    """
    record = baselines(slug)
    if not record:
        return None
    rows = int(record["rows"]["train"])
    return float(record["pretrained"]["seconds"]) / (rows * record["recipe"]["epochs"]), rows


@functools.cache
def recorded_demo() -> dict[str, Any]:
    """What the "60-second demo" took where it was last measured; empty before that.

    Keys: `plan` (of the preset), `seconds` (from launch to the end of the last run, the median of `repeats`), `cores`, `processor`,
    `others` (share of the processors' time that other processes had), `runs` (per method `seconds`, `train_seconds`, `score`, ...),
    `versions`, `date`.
    """
    return json.loads(DEMO_RECORD.read_text(encoding="utf-8")) if DEMO_RECORD.exists() else {}


def mean(value: Any) -> float | None:
    """The value itself, or the mean of a record over seeds; None where it is undefined."""
    average = value["mean"] if isinstance(value, dict) else value
    return None if average is None else float(average)


@functools.cache
def _record() -> dict[str, Any]:
    return json.loads(RECORD.read_text(encoding="utf-8"))["tasks"] if RECORD.exists() else {}
