"""A person's own files as a task: a preview, a guess of which column is what, and the split that they may lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isoviz import input_validation
from isoviz.errors import DataError, InputError, listed, shortened
from isoviz.tasks import files
from isoviz.tasks.kinds import KINDS, as_name
from isoviz.tasks.protocol import HEAD_KINDS, OWN, SPLITS, TRAIN, VALIDATION, HeadKind, OwnTask, Task

if TYPE_CHECKING:
    import pandas as pd

MAX_CLASSES = 50
"""More distinct labels than this are no classes: numbers or texts."""
FEW_NUMBERS = 20
"""Whole numbers with at most this many distinct values are classes, else a quantity."""


@dataclass(frozen=True)
class Preview:
    """The beginning of a person's files.

    Attributes:
        columns: names in the order of the file.
        rows: the first rows, values as they stand there.
        split: whether a validation split has to be made.
        files: names of the files that are read, per split.
    """

    columns: tuple[str, ...]
    rows: tuple[dict[str, object], ...]
    split: bool
    files: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class Guess:
    """The guessed kind of a label column.

    Attributes:
        kind: what is predicted.
        why: the reason, as a sentence.
        label_names: classes in the order of their codes; empty for other kinds.
        counts: rows per class, in that order.
    """

    kind: HeadKind
    why: str
    label_names: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()


def find(data: str | Path | None) -> dict[str, tuple[Path, ...]]:
    """The files of own data: `train` and `validation` of a folder, its `train` only, or the one file there is."""
    if data is None:
        raise DataError.at("data", "own data need a file or a folder")
    path, allowed = input_validation.path(data, "data", DataError), ", ".join(files.allowed())
    if path.is_file():
        if not files.is_table(path):
            ending = path.suffix or "nothing"
            raise DataError.at("data", f"'{path.name}' ends in '{ending}' (allowed: {allowed})")
        return {TRAIN: (path,)}
    if input_validation.folder(path, "data", DataError) is None:
        raise DataError.at("data", f"'{shortened(data)}' is not a file or folder that this machine can read")
    splits = {split: paths for split in SPLITS if (paths := files.of_split(path, split))}
    if TRAIN in splits:
        return splits
    tables = [file for file in path.iterdir() if files.is_table(file)]
    if len(tables) == 1:
        return {TRAIN: (input_validation.file(tables[0], "data", DataError),)}
    raise DataError.at(
        "data",
        f"'{data}' has {len(tables) or 'no'} data files and none is named train (allowed: one file, or train and "
        f"validation, as {allowed})",
    )


def preview(data: str | Path, rows: int = 20) -> Preview:
    """Columns and first rows; `DataError` for what cannot be read."""
    by_split = find(data)
    frame = files.tabular(by_split[TRAIN][0], rows)
    return Preview(
        tuple(str(name) for name in frame.columns),
        tuple({str(name): value for name, value in row.items()} for row in frame.to_dict("records")),
        VALIDATION not in by_split,
        {split: tuple(path.name for path in paths) for split, paths in by_split.items()},
    )


def guess_columns(preview: Preview) -> dict[str, str | None]:
    """Which column could be `text`, `second` and `label`: by its name, else by its values. None where no column fits."""
    names = {name.lower(): name for name in reversed(preview.columns)}

    def called(*candidates: str) -> str | None:
        return next((names[word] for word in candidates if word in names), None)

    label = called(
        "label", "labels", "answers", "answer", "target", "class", "category", "score", "rating", "sentiment"
    )
    texts = [name for name in preview.columns if name != label and _is_text([row.get(name) for row in preview.rows])]
    if label is None:
        rest = [name for name in preview.columns if name not in texts and name.lower() not in ("id", "idx", "index")]
        label = rest[-1] if rest else texts.pop() if len(texts) > 1 else None
    text = called("question", "text", "sentence", "sentence1", "premise", "question1", "source", "article")
    text = text if text in texts else (texts[0] if texts else None)
    second = called("context", "sentence2", "hypothesis", "question2")
    return {"text": text, "second": second if second in texts and second != text else None, "label": label}


def _is_text(values: Sequence[object]) -> bool:
    word_counts = [len(value.split()) for value in values if isinstance(value, str)]
    return len(word_counts) * 2 > len(values) and float(np.mean(word_counts)) > 2


def guess(data: str | Path | None, columns: OwnTask) -> Guess:
    """The kind of task, guessed from all labels of the training file; a kind given in `columns` is kept.

    Raises:
        DataError: a file or column that is not there, no labels, or labels that cannot be of the given kind.
    """
    places = {"text": columns.text, "label": columns.label} | ({"second": columns.second} if columns.second else {})
    by_split = find(data)
    for paths in by_split.values():
        files.read(paths, places, files.first(1))  # all columns are there; of parquet the texts are not read for that
    frames = [files.read(paths, {"label": columns.label}) for paths in by_split.values()]
    labels = frames[0]["label"].dropna()
    if not len(labels):
        raise DataError.at("data", f"the column {columns.label} is empty")
    kind, reason = (columns.kind, "As chosen.") if columns.kind else _kind(labels, columns.second is not None)
    if kind != "classification":
        return Guess(kind, reason)
    every = [as_name(value) for frame in frames for value in frame["label"].dropna()]
    names = columns.label_names or tuple(sorted(set(every), key=_by_number))
    if len(names) > MAX_CLASSES and not columns.label_names:
        raise DataError.at(
            "data", f"'{columns.label}' has {len(names)} distinct values; classes are at most {MAX_CLASSES}"
        )
    return Guess(kind, reason, names, tuple(every.count(name) for name in names))


def completed(data: str | Path | None, columns: OwnTask) -> OwnTask:
    """`columns` with kind and classes filled in from the files: what a run keeps."""
    guessed = guess(data, columns)
    return columns.model_copy(update={"kind": guessed.kind, "label_names": guessed.label_names})


def _kind(labels: pd.Series, second: bool) -> tuple[HeadKind, str]:
    import pandas as pd

    values = labels.tolist()
    if isinstance(values[0], (dict, list, np.ndarray)):
        return "span", "The labels hold answers with their positions."
    texts = [as_name(value) for value in values]
    distinct = len(set(texts))
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce")
    if numbers.notna().all() and not isinstance(values[0], bool):
        if (numbers % 1 == 0).all() and distinct <= FEW_NUMBERS:
            return "classification", f"Whole numbers with {distinct} distinct values."
        return "regression", f"Numbers with {distinct} distinct values."
    if distinct <= MAX_CLASSES and distinct * 2 <= max(len(texts), 4):
        return "classification", f"Texts with {distinct} distinct values."
    if second:
        return "span", "Mostly unique texts beside two others: an answer to find in the second text."
    return "seq2seq", "Mostly unique texts: a text to generate."


def _by_number(name: str) -> tuple[bool, float, str]:
    """Numbers by value, then words by alphabet."""
    try:
        return False, float(name), name
    except ValueError:
        return True, 0.0, name


def task(columns: OwnTask) -> Task:
    """The task that completed columns describe; `InputError` for columns that do not fit the kind."""
    kind = columns.kind
    if kind is None:
        raise InputError.at("own.kind", f"not known yet (allowed: {', '.join(HEAD_KINDS)})")
    rules = KINDS[kind]
    classes = columns.label_names
    used = [name for name in (columns.text, columns.second, columns.label) if name is not None]
    second = columns.label if kind == "seq2seq" else columns.second
    places = dict(zip(rules.columns, [name for name in (columns.text, second) if name], strict=False))
    problem, field = "", "own"
    if len(set(used)) < len(used):
        problem = f"name each column once (got {', '.join(used)})"
    elif kind == "span" and columns.second is None:
        problem, field = "answers need the column of the context", "own.second"
    elif kind == "seq2seq" and columns.second is not None:
        problem, field = "a text is written from one text; label is the target", "own.second"
    elif kind == "classification" and len(classes) < 2:
        problem, field = f"at least two classes are needed (got {', '.join(classes) or 'none'})", "own.label_names"
    elif len(set(classes)) < len(classes):
        problem, field = f"name each class once (got {listed(classes)})", "own.label_names"
    if problem:
        raise InputError.at(field, f"{problem}")
    return Task(
        slug=OWN,
        title="Own data",
        description=rules.question,
        columns=tuple(places),
        places=tuple(places.items()),
        label_names=classes if kind == "classification" else (),
        label=columns.label,
        metrics=("accuracy", "f1", "matthews") if kind == "classification" and len(classes) == 2 else rules.metrics,
        source="Own data",
        licence="Their owner's.",
        kind=kind,
        by_name=True,
        own=columns,
    )


def frames(
    task: Task, data: str | Path | None, places: Mapping[str, str], picks: Mapping[str, files.Pick | None]
) -> dict[str, pd.DataFrame]:
    """Raw rows of train and validation; the second is held out of the first if no file has it."""
    by_split = find(data)
    if VALIDATION in by_split:
        return {split: files.read(paths, places, picks[split]) for split, paths in by_split.items()}
    all_rows = files.read(by_split[TRAIN], places)
    held_out = _held_out(all_rows, task)
    parts = {TRAIN: all_rows[~held_out], VALIDATION: all_rows[held_out]}
    return {split: part.iloc[pick(len(part))] if (pick := picks[split]) else part for split, part in parts.items()}


def _held_out(frame: pd.DataFrame, task: Task) -> np.ndarray:
    """(rows,) bool: a seeded share of the distinct texts, so that no text is on both sides."""
    assert task.own is not None
    import pandas as pd

    texts = ["\x1f".join(map(str, row)) for row in frame[list(task.columns)].itertuples(index=False)]
    group = pd.factorize(np.asarray(texts, dtype=object))[0]
    groups = int(group.max()) + 1 if len(group) else 0
    if groups < 2:
        raise DataError.at("data", f"{groups} distinct rows cannot be split; at least two are needed")
    order = np.random.default_rng(task.own.split_seed).permutation(groups)
    held = order[: min(groups - 1, max(1, round(groups * task.own.share)))]
    return np.isin(group, held)
