"""Trainings that `isoviz.Watch` recorded: those in the app's own folder, in the folder of `isoviz app FOLDER`, and the examples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dashboard.shared import examples
from isoviz import allowed_paths, demo
from isoviz.errors import InputError
from isoviz.runs.examples import switched_on
from isoviz.watch import trainings
from isoviz.watch.trainings import Training


@dataclass(frozen=True)
class Found:
    """Trainings by key, the last changed first, the examples after all others; and why other files were left out."""

    trainings: Mapping[str, Training]
    problems: tuple[str, ...]

    @property
    def own(self) -> list[str]:
        """Keys of those that are not examples."""
        return [key for key in self.trainings if not is_example(key)]


def is_example(key: str) -> bool:
    return key.startswith(demo.EXAMPLE)


def found() -> Found:
    """What this visitor sees."""
    read, problems = {}, []
    for key, path in _files().items():
        try:
            read[key] = _read(path)
        except InputError as error:
            problems.append(str(error))
    return Found(read, tuple(problems))


def find(key: str) -> Training | None:
    """The training with a key; keys are looked up among the files, so that no visitor can name another one."""
    path = _files().get(key)
    try:
        return None if path is None else _read(path)
    except InputError:
        return None


def _files() -> dict[str, Path]:
    folders = {trainings.default_folder(), *(Path(name) for name in [os.environ.get(trainings.FOLDER)] if name)}
    own = [path for folder in folders for path in trainings.files_in(folder)]
    files = {hashlib.sha256(os.fsencode(path)).hexdigest()[:16]: path for path in sorted(own, key=_age)}
    if switched_on() and examples.shown():
        files |= {demo.EXAMPLE + path.stem: path for path in sorted(demo.WATCHED.glob(f"*{trainings.SUFFIX}"))}
    return files


def _age(path: Path) -> float:
    return -path.stat().st_mtime if path.exists() else 0.0  # deleted since


def _read(path: Path) -> Training:
    """A file that the browser may read. Raises `InputError`."""
    roots = allowed_paths.roots()
    if roots is not None:
        path = allowed_paths.below(path, replace(roots, own=(*roots.own, trainings.default_folder())), "watched")
    return trainings.read(path)
