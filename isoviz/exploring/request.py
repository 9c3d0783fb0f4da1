"""The request for a view, and the key under which its content is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import isoviz
from isoviz import tasks
from isoviz.errors import InputError
from isoviz.exploring import user_sets
from isoviz.models import folders, sources
from isoviz.models.sources import ModelSource

FORMAT: Final = 6
"""Version of a result's files. Raise it when old results could no longer be read correctly."""

SPLITS: Final = ("validation", "train")
FEWEST_ROWS: Final = 2
MOST_ROWS: Final = 100_000
_LONGEST: Final = 100_000
_TOKENIZER_FILES: Final = (
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)


@dataclass(frozen=True)
class ViewRequest:
    """An encoder on the first rows of a task's split or on a user's texts; or a user's vectors, without encoder.

    Attributes:
        model: a bundled name, a directory, a hub id, or `run:ID` for the encoder of a finished run; empty for a user's vectors.
        task: slug; `texts` or `vectors` for a user's set (`isoviz.exploring.user_sets`).
        data: the folder of the task's files; None for a generated task or the hub; the key of a user's set.
        split: one of `SPLITS`; `all` for a user's set.
        max_rows: number of first rows of the split.
        max_length: most tokens read of a row.
        seed: seed of the token samples and of the pairs for cosines.
        direction: direction of a translation task, such as "de-en"; None for the first one.
        allow_random: accept a checkpoint that does not fit the model. Not part of keys, because it does not affect fitting models.
        prompt: for pooling `sentence`: name of a prompt of the model; None for its default.
        truncate: for pooling `sentence`: number of dimensions kept; None for the model's default.
        dtype: number format of the weights (`isoviz.models.placing.Dtype`).
    """

    model: str
    task: str
    data: str | None = None
    split: str = "validation"
    max_rows: int = 500
    max_length: int = 128
    seed: int = 0
    direction: str | None = None
    allow_random: bool = False
    prompt: str | None = None
    truncate: int | None = None
    dtype: str = "auto"

    def check(self) -> None:
        """Raise `InputError`, with its field, for an invalid setting. Does not check model and data."""
        user_sets.task_of(self.task).checked_direction(self.direction)
        splits = (user_sets.ALL_ROWS,) if user_sets.is_user_set(self.task) else SPLITS
        if self.split not in splits:
            raise InputError(f"split: no split '{self.split}' (allowed: {', '.join(splits)})", field="split")
        if self.truncate is not None and self.truncate < 1:
            raise InputError(f"truncate: must be at least 1 (got {self.truncate})", field="truncate")
        limits = {"max_rows": (FEWEST_ROWS, MOST_ROWS), "max_length": (1, _LONGEST), "seed": (0, 2**32 - 1)}
        for field, (low, high) in limits.items():
            number = getattr(self, field)
            if not low <= number <= high:
                raise InputError(f"{field}: must be at least {low}, at most {high} (got {number})", field=field)

    def as_json(self) -> dict[str, Any]:
        """JSON form, which `ViewRequest(**…)` reads."""
        return asdict(self)


@dataclass(frozen=True)
class Rows:
    """The part of a task's data in the key: fingerprint and rows per split."""

    fingerprint: str
    counts: Mapping[str, int]


def rows_of(task: str, data: str | None) -> Rows:
    """Read and check a task's rows. Raises like `isoviz.tasks.load`."""
    if user_sets.is_user_set(task):
        uploaded = user_sets.load_set(task, data)
        return Rows(str(data), {user_sets.ALL_ROWS: uploaded.n})
    task_data = tasks.load(tasks.get(task), data)
    return Rows(task_data.fingerprint, {"train": len(task_data.train), "validation": len(task_data.validation)})


def key_of(request: ViewRequest, source: ModelSource | None, rows: Rows) -> str:
    """Thirty-two hex digits: equal for equal content and settings, independent of the names of model and folder.

    A hub model that is not downloaded yet has no fingerprint, so its name is used instead; a worker stores its result under the key
    of the downloaded model. The rows are always those of the task's first direction, because both directions read the same two
    columns. A user's vectors have no source.
    """
    count = rows.counts[request.split]
    content = {
        "format": FORMAT,
        "isoviz": isoviz.__version__,
        "model": "" if source is None else f"hub:{source.name}" if source.kind == "hub" else source.fingerprint,
        "tokenizer": "" if source is None else reading_files(source),
        "task": request.task,
        "data": rows.fingerprint,
        "split": request.split,
        "rows": min(request.max_rows, count),
        "max_length": request.max_length,
        "seed": request.seed,
        "direction": user_sets.task_of(request.task).checked_direction(request.direction),
        **{name: value for name in ("prompt", "truncate") if (value := getattr(request, name)) is not None},
        **({"dtype": request.dtype} if request.dtype != "auto" else {}),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def reading_files(source: ModelSource) -> str:
    """Digest of the tokenizer and the modules, which a model's fingerprint (weights and configuration) does not cover; empty for a model
    that is not downloaded yet."""
    if source.kind == "hub":
        return ""
    folder = Path(source.location)
    files = [path for path in (folder / name for name in _TOKENIZER_FILES) if path.is_file()]
    files += folders.module_files(folder)
    return sources.digest(files, named=True)
