"""Scheduling of computations when a class of thirty moves sliders on a machine with two cores.

- A slider's move comes first, then images that must be built, then slow follow-ups (`Rank`), unless one of those has waited for
  `HEAD_START`. Among equals, the viewer who has waited longest comes first.
- Each viewer has one question; a newer one replaces it. It is dropped before its next stage once no viewer of it is left.
- Follow-ups are computed in stages. After each stage, moves and other viewers' stages get their turn.
- Viewers with the same question share one answer.

There is one more thread than cores. Slow questions take at most as many threads as cores, and follow-ups one fewer, so that a move
always finds a free thread and a build does not wait for a follow-up.
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

from isoviz.devices import available_cores

SETTLED: Final = 0.7
"""Seconds without a move before a follow-up starts, if there are several viewers: in a class, the next move would drop most of them."""

IN_CLASS: Final = 10.0
"""Seconds for which a viewer counts as present after a question."""

BEGUN: Final = 4
"""Most unfinished follow-ups, because each holds arrays."""


class Rank(IntEnum):
    """Expected duration of a question; lower ranks come first."""

    MOVE = 0
    """Tens of milliseconds: numbers of an existing image."""
    BUILD = 1
    """About a second: numbers of an image that must be built."""
    FOLLOW = 2
    """Seconds: the refitted head, intervals, neighbours, the map."""


HEAD_START: Final = {Rank.MOVE: 0.0, Rank.BUILD: 0.5, Rank.FOLLOW: 4.0}
"""A question that has waited this many seconds comes before new moves, so that constant moves cannot starve it."""

Work = Callable[[], Any]
"""Returns the result, or a generator that yields between stages and returns the result."""


class _Question:
    def __init__(self, key: str, work: Work, rank: Rank) -> None:
        self.key = key
        self.work = work
        self.rank = rank
        self.since = time.monotonic()
        self.viewers: dict[str, Callable[[], bool]] = {}
        self.stages: Generator[None, None, Any] | None = None
        self.answer: Future[Any] = Future()


class Scheduler:
    """Computes for several viewers at once; one per process, shared by all pages."""

    def __init__(self) -> None:
        self.cores = available_cores()
        self._changed = threading.Condition()
        self._waiting: dict[str, _Question] = {}
        self._running: dict[str, _Question] = {}
        self._question_of: dict[str, str] = {}
        self._seen: dict[str, float] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False

    def submit(
        self,
        viewer: str,
        key: str,
        work: Work,
        rank: Rank = Rank.FOLLOW,
        *,
        is_here: Callable[[], bool] = lambda: True,
    ) -> Future[Any]:
        """The future of `work()`, shared by all questions with this key. Drops the viewer's previous question.

        A question that no viewer has any more is cancelled before its next stage.

        Args:
            is_here: whether the viewer's page is open. Called from the scheduler's threads, so it must be quick and not wait for one.
        """
        with self._changed:
            self._seen[viewer] = time.monotonic()
            self._drop(viewer, key)
            question = self._running.get(key) or self._waiting.get(key)
            if question is None:
                question = self._waiting[key] = _Question(key, work, rank)
                self._start_threads()
            question.viewers[viewer] = is_here
            self._question_of[viewer] = key
            self._changed.notify_all()
            return question.answer

    def close(self) -> None:
        """Cancel questions that have not started, and wait for running stages."""
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

    def _drop(self, viewer: str, new_key: str) -> None:
        old_key = self._question_of.pop(viewer, None)
        if old_key is None or old_key == new_key:
            return
        question = self._running.get(old_key) or self._waiting.get(old_key)
        if question is not None:
            question.viewers.pop(viewer, None)
            if not question.viewers and old_key in self._waiting:
                del self._waiting[old_key]
                _cancel(question)

    def _is_wanted(self, question: _Question) -> bool:
        for viewer in [viewer for viewer, is_here in question.viewers.items() if not is_here()]:
            del question.viewers[viewer], self._question_of[viewer]
        return bool(question.viewers)

    def _start_threads(self) -> None:
        if not self._threads:
            for number in range(self.cores + 1):
                thread = threading.Thread(target=self._serve, name=f"what-if-{number}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _next(self) -> _Question | None:
        """The next question for a thread."""
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
        started = sum(one.stages is not None for one in (*self._waiting.values(), *slow))
        return started < BEGUN and (len(self._seen) < 2 or now - question.since >= SETTLED)

    # ------------------------------------------------------------------ the threads

    def _serve(self) -> None:
        while True:
            with self._changed:
                while (question := self._next()) is None and not self._closed:
                    self._changed.wait(SETTLED / 2 if self._waiting else None)
                if question is None:
                    return
                del self._waiting[question.key]
                if not self._is_wanted(question):
                    _cancel(question)
                    continue
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
                elif self._is_wanted(question) and not self._closed:
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
        """One BLAS thread for moves and for concurrent computations; otherwise all cores."""
        running = list(self._running.values())
        alone = len(running) == 1 and running[0].rank > Rank.MOVE
        threads = self.cores if alone or not running else max(1, self.cores // len(running))
        _blas("scipy.linalg" in sys.modules, "sklearn" in sys.modules).limit(limits=threads)


def _stage(question: _Question) -> tuple[bool, Any, BaseException | None]:
    """Run the next stage; returns whether it was the last, the result, and the error."""
    try:
        if question.stages is None:
            result = question.work()
            if not isinstance(result, Generator):
                return True, result, None
            question.stages = result
        next(question.stages)
    except StopIteration as end:
        return True, end.value, None
    except BaseException as error:  # the waiting caller gets it
        return True, None, error
    return False, None, None


def _cancel(question: _Question) -> None:
    if question.stages is not None:
        question.stages.close()
    question.answer.cancel()


@functools.lru_cache(maxsize=1)
def _blas(*loaded: bool) -> Any:
    """The BLAS libraries of this process; SciPy and scikit-learn may load further ones."""
    del loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


SCHEDULER: Final = Scheduler()
"""The scheduler of this process."""
