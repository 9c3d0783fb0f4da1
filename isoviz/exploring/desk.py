"""Questions to a process that stays: own sentences to embed, clouds to lay out by UMAP, points to place in such a map.

One process per kind of question and machine, started by the first question, gone when nobody has asked for a while. So a
model is loaded once for many sentences, and two UMAPs never run at the same time. A question is a folder named by its content:
whoever asks the same gets the same answer, from the disk if it was answered before.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray

from isoviz.exploring import progress, results, starting
from isoviz.exploring.progress import UNTOLD, Progress, read_json, write_json
from isoviz.runs.processes import Worker, is_alive

Kind = Literal["sentences", "maps"]
KINDS: Final[tuple[Kind, ...]] = ("sentences", "maps")
QUESTION, BEGUN, FACTS, ERROR = "question.json", "begun.json", "facts.json", "error.json"
GIVEN, ANSWER = "given.safetensors", "answer.safetensors"
PROCESS: Final = "process.json"
LOG: Final = "log.txt"


@dataclass(frozen=True)
class Reply:
    """How a question stands.

    Attributes:
        kind: `waiting` (for its turn, or for the process to start), `running`, `done` or `failed`.
        id: of the question, for `cancel`.
        progress: while running.
        facts, arrays: of an answer.
        message, field, advice: of a failure, in the user's terms.
    """

    kind: Literal["waiting", "running", "done", "failed"]
    id: str
    progress: Progress = UNTOLD
    facts: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict, repr=False)
    message: str = ""
    field: str | None = None
    advice: str = ""


def ask(
    kind: Kind, question: Mapping[str, Any], given: Mapping[str, NDArray[Any]] | None = None, *, at: Path | None = None
) -> Reply:
    """Ask, or look how a question that was asked stands: the same call, as often as one likes; it never waits.

    Args:
        question: JSON, see `isoviz.exploring.desk_worker`.
        given: arrays that belong to the question.
    """
    root = at or results.root()
    id = id_of(question, given)
    folder = _folder(root, kind) / id
    found = _answered(folder, id)
    if found is not None:
        return found
    with alone(root, kind):
        if not (folder / QUESTION).exists():
            folder.mkdir(parents=True, exist_ok=True)
            if given:
                from safetensors.numpy import save_file

                save_file({name: np.ascontiguousarray(array) for name, array in given.items()}, folder / GIVEN)
            write_json(folder / QUESTION, dict(question))
        if not _lives(root, kind):
            if (folder / BEGUN).exists() and _answered(folder, id) is None:
                # It was at this when it ended: asked again, it would end again.
                words = "the process that worked on this is gone; it was killed, perhaps because memory ran out"
                write_json(
                    folder / ERROR, {"message": words, "field": None, "advice": "Take fewer points, or try again."}
                )
            else:
                _spawn(root, kind)
    begun = (folder / BEGUN).exists()
    return _answered(folder, id) or Reply("running" if begun else "waiting", id, progress.read(folder))


def forget(kind: Kind, id: str, *, at: Path | None = None) -> None:
    """Drop a question with its answer; the process ends if it is at this question just now."""
    root = at or results.root()
    folder = _folder(root, kind) / id
    with alone(root, kind):
        working = (folder / BEGUN).exists() and not (folder / FACTS).exists() and not (folder / ERROR).exists()
        process = read_json(_folder(root, kind) / PROCESS)
        if working and process is not None and is_alive(process["pid"], process["started"]):
            Worker(process["pid"], process["started"]).kill()
        shutil.rmtree(folder, ignore_errors=True)


def let_go(kind: Kind, id: str, *, at: Path | None = None) -> None:
    """Drop a question that has no answer yet, as `forget` does; one that has keeps it for whoever asks again."""
    if _answered(_folder(at or results.root(), kind) / id, id) is None:
        forget(kind, id, at=at)


def close(*, at: Path | None = None) -> None:
    """End the processes of all kinds, whatever they do."""
    root = at or results.root()
    for kind in KINDS:
        with alone(root, kind):
            process = read_json(_folder(root, kind) / PROCESS)
            if process is not None and is_alive(process["pid"], process["started"]):
                Worker(process["pid"], process["started"]).kill()


def id_of(question: Mapping[str, Any], given: Mapping[str, NDArray[Any]] | None = None) -> str:
    """Thirty-two hex digits of a question's content."""
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode())
    for name, array in sorted((given or {}).items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


@contextlib.contextmanager
def alone(root: Path, kind: Kind) -> Iterator[None]:
    """Asking, starting and leaving exclude each other: no question falls between two processes."""
    locks = root / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / f"desk-{kind}.lock"):
        yield


def _folder(root: Path, kind: Kind) -> Path:
    return root / "desk" / kind


def _answered(folder: Path, id: str) -> Reply | None:
    facts = read_json(folder / FACTS)
    if facts is not None:
        from safetensors.numpy import load_file

        try:
            return Reply("done", id, facts=facts, arrays=load_file(folder / ANSWER))
        except FileNotFoundError:  # cleared away this moment
            return None
    error = read_json(folder / ERROR)
    if error is not None:
        return Reply("failed", id, message=error["message"], field=error["field"], advice=error["advice"] or "")
    return None


def _lives(root: Path, kind: Kind) -> bool:
    process = read_json(_folder(root, kind) / PROCESS)
    return process is not None and is_alive(process["pid"], process["started"])


def _spawn(root: Path, kind: Kind) -> None:
    folder = _folder(root, kind)
    # UMAP is no matter of encoders: a spare would only hold their memory
    pid, started = starting.launch(
        "isoviz.exploring.desk_worker", [kind, str(root)], folder / LOG, prepared=kind == "sentences"
    )
    write_json(folder / PROCESS, {"pid": pid, "started": started})
