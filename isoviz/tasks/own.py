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
from isoviz.tasks.kinds import KINDS, Embedding, as_name
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
    """Which column could be `text`, `second`, `third` and `label`: by its name, else by its values. None where no column fits."""
    names = {name.lower(): name for name in reversed(preview.columns)}

    def called(*candidates: str) -> str | None:
        return next((names[word] for word in candidates if word in names), None)

    texts = [name for name in preview.columns if _is_text([row.get(name) for row in preview.rows])]
    positive, negative = called("positive", "document", "passage"), called("negative")
    if positive is None and "context" not in names and names.get("answer") in texts:  # sentences, not classes
        positive = names.pop("answer")
    label = called(
        "label", "labels", "answers", "answer", "target", "class", "category", "score", "rating", "sentiment"
    )
    texts = [name for name in texts if name != label]
    if label is None and positive is None:
        rest = [name for name in preview.columns if name not in texts and name.lower() not in ("id", "idx", "index")]
        label = rest[-1] if rest else texts.pop() if len(texts) > 1 else None
    text = called(
        "anchor", "query", "question", "text", "sentence", "sentence1", "premise", "question1", "source", "article"
    )
    text = text if text in texts else (texts[0] if texts else None)
    second = positive or called("context", "sentence2", "hypothesis", "question2")
    second = second if second in texts and second != text else None
    return {"text": text, "second": second, "third": negative if positive and not label else None, "label": label}


def _is_text(values: Sequence[object]) -> bool:
    word_counts = [len(value.split()) for value in values if isinstance(value, str)]
    return len(word_counts) * 2 > len(values) and float(np.mean(word_counts)) > 2


def guess(data: str | Path | None, columns: OwnTask) -> Guess:
    """The kind of task, guessed from all labels of the training file; a kind given in `columns` is kept.

    Raises:
        DataError: a file or column that is not there, no labels, or labels that cannot be of the given kind.
    """
    every_place = {name: getattr(columns, name) for name in ("text", "second", "third", "label")}
    places = {name: place for name, place in every_place.items() if place}
    by_split = find(data)
    for paths in by_split.values():
        files.read(paths, places, files.first(1))  # all columns are there; of parquet the texts are not read for that
    if columns.label is None:
        if columns.kind not in (None, "embedding"):
            raise InputError.at("own.label", f"a {columns.kind} task needs the column of its labels")
        return Guess("embedding", "There is no label: the texts of a row belong together.")
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
    used = [name for name in (columns.text, columns.second, columns.third, columns.label) if name is not None]
    second = columns.label if kind == "seq2seq" else columns.second
    texts = [name for name in (columns.text, second, columns.third) if name]
    places = dict(zip(rules.columns, texts, strict=False))
    metrics = rules.metrics
    problem, field = "", "own"
    if len(set(used)) < len(used):
        problem = f"name each column once (got {', '.join(used)})"
    elif kind == "span" and columns.second is None:
        problem, field = "answers need the column of the context", "own.second"
    elif kind == "seq2seq" and columns.second is not None:
        problem, field = "a text is written from one text; label is the target", "own.second"
    elif kind == "embedding" and columns.second is None:
        problem, field = (
            "embeddings are trained on texts that belong together: name the column of the second",
            "own.second",
        )
    elif columns.third and (kind != "embedding" or columns.label):
        problem, field = "a negative is for embeddings without a label", "own.third"
    elif kind == "classification" and len(classes) < 2:
        problem, field = f"at least two classes are needed (got {', '.join(classes) or 'none'})", "own.label_names"
    elif len(set(classes)) < len(classes):
        problem, field = f"name each class once (got {listed(classes)})", "own.label_names"
    if problem:
        raise InputError.at(field, f"{problem}")
    if kind == "classification" and len(classes) == 2:
        metrics = ("accuracy", "f1", "matthews")
    elif kind == "embedding" and not columns.label:
        metrics = Embedding.ranked
    return Task(
        slug=OWN,
        title="Own data",
        description=rules.question,
        columns=tuple(places),
        places=tuple(places.items()),
        label_names=classes if kind == "classification" else (),
        label=columns.label or "",
        metrics=metrics,
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
    """(rows,) bool: a seeded share of the distinct texts, so that no text is on both sides; of embeddings, whose texts may each be in
    several rows, about a share of the rows, which share no text with the others."""
    assert task.own is not None
    import pandas as pd

    joined = ["\x1f".join(map(str, row)) for row in frame[list(task.columns)].itertuples(index=False)]
    group = pd.factorize(np.asarray(joined, dtype=object))[0]
    if task.kind == "embedding":
        group = _connected(frame[list(task.columns)].astype(str).to_numpy())
    groups = int(group.max()) + 1 if len(group) else 0
    if groups < 2:
        what = "group of rows that share texts" if task.kind == "embedding" and len(frame) else "distinct rows"
        raise DataError.at("data", f"{groups} {what} cannot be split; at least two are needed")
    order = np.random.default_rng(task.own.split_seed).permutation(groups)
    count = max(1, round(groups * task.own.share))
    if task.kind == "embedding":
        rows = np.cumsum(np.bincount(group)[order])
        count = max(1, int(np.searchsorted(rows, task.own.share * len(group), side="right")))
    return np.isin(group, order[: min(groups - 1, count)])


def _connected(texts: np.ndarray) -> np.ndarray:
    """(rows,): the number of each row's group. Rows (rows, columns) of texts that share one, directly or through others, are a group."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    codes = np.unique(texts, return_inverse=True)[1].reshape(texts.shape)
    first, others = np.repeat(codes[:, 0], texts.shape[1] - 1), codes[:, 1:].ravel()
    size = int(codes.max(initial=-1)) + 1
    component = connected_components(coo_array((np.ones(len(first)), (first, others)), shape=(size, size)))[1]
    return np.unique(component[codes[:, 0]], return_inverse=True)[1]
