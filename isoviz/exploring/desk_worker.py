"""The process behind `isoviz.exploring.desk`: `python -m isoviz.exploring.desk_worker KIND ROOT`.

Questions of kind `sentences` are `{"model", "fingerprint", "layer", "pooling", "max_length", "texts": columns of texts}`; the
answer holds the arrays of `isoviz.exploring.encoders.Embedded`, and `tokens`. Those of kind `maps` are `{"view": key, "layer",
"pooling", "map": a MapRequest}`, with `points` (m, d) given if they are to be placed in the map; the answer holds `coordinates`.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError, IsoVizError
from isoviz.exploring import desk, encoders, maps, results
from isoviz.exploring.desk import ANSWER, BEGUN, ERROR, FACTS, GIVEN, PROCESS, QUESTION, Kind
from isoviz.exploring.progress import ProgressFile, read_json, write_json

IDLE: Final = 600.0
"""Seconds without a question after which the process ends and its memory is free again."""
KEPT_ANSWERS: Final = 200
_KEPT = {"sentences": 1, "maps": 3}
"""Models, or fitted maps, that stay in memory."""
_LOOK: Final = 0.05

Given = dict[str, NDArray[Any]]
Answer = tuple[dict[str, Any], Given]
Tell = Callable[[int, int, str], None]


class Kept:
    """The last few of something that is slow to make."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is kept under this key, made if it is not there; the longest unused one goes."""
        if key not in self._items:
            while len(self._items) >= self._most:
                self._items.popitem(last=False)
            self._items[key] = make()
        self._items.move_to_end(key)
        return self._items[key]


def sentences(question: dict[str, Any], given: Given, kept: Kept, tell: Tell, root: Path) -> Answer:
    """Embed texts with one layer and pooling of a model."""
    tell(0, 2, "loading the model")
    direction = question.get("direction")
    model = kept.get((question["fingerprint"], direction), lambda: encoders.load(question["model"], direction))
    tell(1, 2, "reading the sentences")
    found = model.embed(question["texts"], question["layer"], question["pooling"], question["max_length"])
    return {"tokens": list(found.tokens)}, {"points": found.points, "texts": found.texts}


def layouts(question: dict[str, Any], given: Given, kept: Kept, tell: Tell, root: Path) -> Answer:
    """Lay a cloud of a view out by UMAP, or place points in that map; a map that is not in memory any more is made again."""
    view = results.find(question["view"], at=root)
    if view is None:
        raise InputError("this view is not kept any more: look again")
    layer, pooling, request = question["layer"], question["pooling"], maps.from_json(question["map"])
    request.check()

    def fit() -> Any:
        points = view.points(layer, pooling)
        return maps.fit_umap(points[maps.drawn(len(points), request)], request, tell)

    fitted = kept.get((question["view"], request.key(layer, pooling)), fit)
    if "points" not in given:
        return {}, {"coordinates": np.asarray(fitted.embedding_, dtype=np.float32)}
    tell(99, 100, "placing the sentences")
    return {}, {"coordinates": np.asarray(fitted.transform(given["points"]), dtype=np.float32)}


WORK: Final = {"sentences": sentences, "maps": layouts}


def answer(folder: Path, kind: Kind, kept: Kept, root: Path) -> None:
    """Answer one question, or say why not, in its folder."""
    question = read_json(folder / QUESTION)
    if question is None:
        return
    write_json(folder / BEGUN, {"at": time.time()})
    given: Given = {}
    try:
        if (folder / GIVEN).exists():
            from safetensors.numpy import load_file

            given = load_file(folder / GIVEN)
        facts, arrays = WORK[kind](question, given, kept, ProgressFile(folder), root)
        from safetensors.numpy import save_file

        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, folder / ANSWER)
        write_json(folder / FACTS, facts)
    except FileNotFoundError:
        if folder.exists():  # else somebody forgot the question meanwhile
            _fail(folder, "a file that was needed is gone", None, "Look again.")
    except IsoVizError as error:
        _fail(folder, str(error), error.field, error.advice)
    except MemoryError:
        _fail(folder, "the machine's memory is not enough", None, "Take fewer points.")
    except Exception as error:  # a bug, or a machine's trouble: the log has the traceback, the page its name
        reason = next(iter(str(error).strip().splitlines()), "")
        _fail(folder, f"the computation failed with {type(error).__name__}: {reason}".rstrip(": "), None, None)


def serve(kind: Kind, root: Path, idle: float = IDLE) -> None:
    """Answer questions, the oldest first, until none has come for `idle` seconds."""
    home, kept, last = root / "desk" / kind, Kept(_KEPT[kind]), time.monotonic()
    while True:
        waiting = _waiting(home)
        if waiting:
            answer(waiting[0], kind, kept, root)
            _clear(home)
            last = time.monotonic()
        elif time.monotonic() - last > idle:
            with desk.alone(root, kind):  # whoever asks after this starts another process
                if not _waiting(home):
                    (home / PROCESS).unlink(missing_ok=True)
                    return
        else:
            time.sleep(_LOOK)


def main(arguments: list[str] | None = None) -> int:
    """Serve one kind of question."""
    kind, root = sys.argv[1:] if arguments is None else arguments
    serve(kind, Path(root))  # type: ignore[arg-type]
    return 0


def _waiting(home: Path) -> list[Path]:
    found = []
    for path in home.glob(f"*/{QUESTION}"):
        folder = path.parent
        with contextlib.suppress(FileNotFoundError):
            if not any((folder / name).exists() for name in (FACTS, ERROR)):
                found.append((path.stat().st_mtime, folder))
    return [folder for _, folder in sorted(found)]


def _clear(home: Path) -> None:
    """Old answers go; that people's sentences do not stay for ever is as good a reason as the disk."""
    done = sorted(home.glob(f"*/{FACTS}"), key=lambda path: path.stat().st_mtime)
    for path in done[:-KEPT_ANSWERS]:
        shutil.rmtree(path.parent, ignore_errors=True)


def _fail(folder: Path, message: str, field: str | None, advice: str | None) -> None:
    traceback.print_exc()
    with contextlib.suppress(FileNotFoundError):
        write_json(folder / ERROR, {"message": message, "field": field, "advice": advice})


if __name__ == "__main__":
    sys.exit(main())
