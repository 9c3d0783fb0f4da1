"""Whose question is computed next, when a class of thirty moves sliders on a machine with two cores.

- A slider's move comes before an image that has to be built, and that before what follows (`Rank`), unless that has waited long
  (`HEAD_START`). Among equals the viewer who has waited longest comes first.
- A viewer has one question: a newer one replaces it.
- What follows is computed in stages. After each of them moves come first, and the next viewer's stage is taken.
- Who asks for the same thing shares one answer.

There is one thread more than cores; at most as many as cores do what is slow, and one fewer what follows, so that a move finds
a thread at once and a build does not wait for a stage of what follows.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from enum import IntEnum
from typing import Any, Final

from isoviz.training.devices import available_cores

SETTLED: Final = 0.7
"""Seconds that a viewer among several has to be still before what follows is begun: in a class most of it would be dropped by
the next move."""

IN_CLASS: Final = 10.0
"""Seconds for which a viewer who asked counts as present."""

BEGUN: Final = 4
"""Questions of which some stages are done and some are not, at most: each holds arrays."""


class Rank(IntEnum):
    """How long a question takes; the lower comes first."""

    MOVE = 0
    """Tens of milliseconds: numbers of an image that is known."""
    BUILD = 1
    """About a second: numbers of an image that has to be built."""
    FOLLOW = 2
    """Seconds: the refitted head, intervals, neighbours, the map."""


HEAD_START: Final = {Rank.MOVE: 0.0, Rank.BUILD: 0.5, Rank.FOLLOW: 4.0}
"""Seconds that a question must have waited to come before a move that is asked now: constant moving must not starve it."""

Work = Callable[[], Any]
"""Gives the result, or a generator that yields between its stages and returns the result."""


class _Question:
    def __init__(self, key: str, work: Work, rank: Rank) -> None:
        self.key = key
        self.work = work
        self.rank = rank
        self.since = time.monotonic()
        self.viewers: set[str] = set()
        self.stages: Generator[None, None, Any] | None = None
        self.answer: Future[Any] = Future()


class Scheduler:
    """Computes for several viewers at once. It belongs to the process, not to a page."""

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or available_cores()
        self._changed = threading.Condition()
        self._waiting: dict[str, _Question] = {}
        self._running: dict[str, _Question] = {}
        self._question_of: dict[str, str] = {}
        self._seen: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False

    def ask(self, viewer: str, key: str, work: Work, rank: Rank = Rank.FOLLOW) -> Future[Any]:
        """The future of `work()`, shared by all who ask for this key; the viewer's older question is dropped.

        A dropped question that no one else has is cancelled before its next stage.
        """
        with self._changed:
            self._seen[viewer] = time.monotonic()
            self._drop(viewer, key)
            question = self._running.get(key) or self._waiting.get(key)
            if question is None:
                question = self._waiting[key] = _Question(key, work, rank)
                self._start_threads()
            question.viewers.add(viewer)
            self._question_of[viewer] = key
            self._changed.notify_all()
            return question.answer

    def leave(self, viewer: str) -> None:
        """Drop the viewer's question."""
        with self._changed:
            self._drop(viewer, None)

    def close(self) -> None:
        """Cancel what has not begun, and wait for the stages that run."""
        with self._changed:
            self._closed = True
            for question in self._waiting.values():
                question.answer.cancel()
            self._waiting.clear()
            self._question_of.clear()
            self._seen.clear()
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        self._closed = False

    # ------------------------------------------------------------------ under the lock

    def _drop(self, viewer: str, new_key: str | None) -> None:
        old_key = self._question_of.pop(viewer, None)
        if old_key is None or old_key == new_key:
            return
        question = self._running.get(old_key) or self._waiting.get(old_key)
        if question is not None:
            question.viewers.discard(viewer)
            if not question.viewers and old_key in self._waiting:
                del self._waiting[old_key]
                _cancel(question)

    def _start_threads(self) -> None:
        if not self._threads:
            for number in range(self.cores + 1):
                thread = threading.Thread(target=self._serve, name=f"what-if-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _next(self) -> _Question | None:
        """What a thread takes now."""
        now = time.monotonic()
        slow = [question for question in self._running.values() if question.rank > Rank.MOVE]
        candidates = [question for question in self._waiting.values() if self._may_start(question, slow, now)]
        return min(candidates, key=lambda question: question.since + HEAD_START[question.rank], default=None)

    def _may_start(self, question: _Question, slow: list[_Question], now: float) -> bool:
        if question.rank == Rank.MOVE:
            return True
        if len(slow) >= self.cores:
            return False
        if question.rank == Rank.BUILD:
            return True
        if sum(one.rank == Rank.FOLLOW for one in slow) >= max(1, self.cores - 1):
            return False
        if question.stages is not None:
            return True
        self._seen = {viewer: seen for viewer, seen in self._seen.items() if now - seen < IN_CLASS}
        begun = sum(one.stages is not None for one in (*self._waiting.values(), *slow))
        return begun < BEGUN and (len(self._seen) < 2 or now - question.since >= SETTLED)

    # ------------------------------------------------------------------ the threads

    def _serve(self) -> None:
        while True:
            with self._changed:
                while (question := self._next()) is None and not self._closed:
                    self._changed.wait(SETTLED / 2 if self._waiting else None)
                if question is None:
                    return
                del self._waiting[question.key]
                self._running[question.key] = question
                self._share_cores()
            done, result, error = _stage(question)
            with self._changed:
                del self._running[question.key]
                self._share_cores()
                if done:
                    for viewer in question.viewers:
                        if self._question_of.get(viewer) == question.key:
                            del self._question_of[viewer]
                elif question.viewers and not self._closed:
                    question.since = time.monotonic()
                    self._waiting[question.key] = question
                else:
                    _cancel(question)
                self._changed.notify_all()
            if done and error is not None:
                question.answer.set_exception(error)
            elif done:
                question.answer.set_result(result)

    def _share_cores(self) -> None:
        """One BLAS thread each where several compute, and for a move, which gains nothing from more; else all cores."""
        running = list(self._running.values())
        alone = len(running) == 1 and running[0].rank > Rank.MOVE
        _limit_blas(self.cores if alone or not running else max(1, self.cores // len(running)))


def _stage(question: _Question) -> tuple[bool, Any, BaseException | None]:
    """Run the next stage: whether that was the last, the result, the error."""
    try:
        if question.stages is None:
            result = question.work()
            if not isinstance(result, Generator):
                return True, result, None
            question.stages = result
        next(question.stages)
    except StopIteration as end:
        return True, end.value, None
    except BaseException as error:  # it belongs to the caller that waits
        return True, None, error
    return False, None, None


def _cancel(question: _Question) -> None:
    if question.stages is not None:
        question.stages.close()
    question.answer.cancel()


def _limit_blas(threads: int) -> None:
    _blas("scipy.linalg" in sys.modules, "sklearn" in sys.modules).limit(limits=threads)


@functools.lru_cache(maxsize=1)
def _blas(*loaded: bool) -> Any:
    """The BLAS libraries of this process; more of them come with SciPy and scikit-learn."""
    del loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


SCHEDULER: Final = Scheduler()
"""That of this process."""
