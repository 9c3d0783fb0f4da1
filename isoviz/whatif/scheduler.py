"""Scheduling of computations when a class of thirty moves sliders on a machine with two cores.

A pool has one thread more than there are cores, and slow questions leave one thread free, so that a slider's move never waits for one.
Moves come before images that must be built, and those before slow follow-ups, unless one has waited for `HEAD_START`. Each viewer has
one question: a newer one replaces it, and work that no viewer waits for ends before its next stage. Viewers with the same question
share one answer.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from isoviz.devices import available_cores


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


@dataclass(eq=False)
class _Question:
    """A question, the viewers who wait for its answer, and whether each one's page is open."""

    key: str
    work: Work
    rank: Rank
    since: float = field(default_factory=time.monotonic)
    viewers: dict[str, Callable[[], bool]] = field(default_factory=dict)
    stages: Generator[None, None, Any] | None = None
    running: bool = False
    answer: Future[Any] = field(default_factory=Future)

    def advance(self) -> bool:
        """Run the next stage; returns whether it was the last. The answer gets the result or the error."""
        try:
            if self.stages is None:
                result = self.work()
                if not isinstance(result, Generator):
                    self.answer.set_result(result)
                    return True
                self.stages = result
            next(self.stages)
        except StopIteration as end:
            self.answer.set_result(end.value)
        except BaseException as error:  # the waiting caller gets it
            self.answer.set_exception(error)
        return self.answer.done()

    def cancel(self) -> None:
        """Give up what is unfinished."""
        if self.stages is not None:
            self.stages.close()
        self.answer.cancel()


class Scheduler:
    """Computes for several viewers at once; one per process, shared by all pages."""

    def __init__(self) -> None:
        self.cores = available_cores()
        self._lock = threading.Lock()
        self._questions: dict[str, _Question] = {}
        self._question_of: dict[str, _Question] = {}
        self._pool: ThreadPoolExecutor | None = None

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
        with self._lock:
            before, question = self._question_of.get(viewer), self._questions.get(key)
            if question is None:
                question = self._questions[key] = _Question(key, work, rank)
            if before is not None and before is not question:
                before.viewers.pop(viewer, None)
                self._drop_if_abandoned(before)
            question.viewers[viewer] = is_here
            self._question_of[viewer] = question
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.cores + 1, thread_name_prefix="what-if")
            self._pool.submit(self._serve, self._pool)
            return question.answer

    def close(self) -> None:
        """Cancel questions that have not started, and wait for running stages."""
        with self._lock:
            pool, self._pool = self._pool, None
            for question in self._questions.values():
                question.viewers.clear()
            for question in list(self._questions.values()):
                self._drop_if_abandoned(question)
        if pool is not None:
            pool.shutdown()

    def _serve(self, pool: ThreadPoolExecutor) -> None:
        """Advance the next question by one stage, in a thread of the pool."""
        with self._lock:
            question = self._next()
            if question is None:
                return
            question.running = True
            self._share_cores()
        done = question.advance()
        with self._lock:
            question.running = False
            self._share_cores()
            if done:
                self._forget(question)
            else:
                self._drop_if_abandoned(question)
            if self._pool is pool and self._questions:
                pool.submit(self._serve, pool)  # the next stage, or a slow question that this one kept waiting

    # ------------------------------------------------------------------ under the lock

    def _next(self) -> _Question | None:
        """The next question for a thread; None if all others must wait."""
        for question in list(self._questions.values()):
            self._drop_if_abandoned(question)
        questions = self._questions.values()
        slow = [question for question in questions if question.running and question.rank > Rank.MOVE]
        follow = sum(question.rank == Rank.FOLLOW for question in slow)
        highest = (
            Rank.FOLLOW if follow < max(1, self.cores - 1) else Rank.BUILD
        )  # a build does not wait for a follow-up
        highest = highest if len(slow) < self.cores else Rank.MOVE
        waiting = (question for question in questions if not question.running and question.rank <= highest)
        return min(waiting, key=lambda question: question.since + HEAD_START[question.rank], default=None)

    def _drop_if_abandoned(self, question: _Question) -> None:
        if not question.running and not any(is_here() for is_here in question.viewers.values()):
            self._forget(question)
            question.cancel()

    def _forget(self, question: _Question) -> None:
        self._questions.pop(question.key, None)
        for viewer in [viewer for viewer, asked in self._question_of.items() if asked is question]:
            del self._question_of[viewer]

    def _share_cores(self) -> None:
        """One BLAS thread for moves and for concurrent computations; otherwise all cores."""
        running = [question.rank for question in self._questions.values() if question.running]
        threads = 1 if running == [Rank.MOVE] else max(1, self.cores // max(1, len(running)))
        _blas("scipy.linalg" in sys.modules, "sklearn" in sys.modules).limit(limits=threads)


@functools.lru_cache(maxsize=1)
def _blas(*loaded: bool) -> Any:
    """The BLAS libraries of this process; SciPy and scikit-learn may load further ones."""
    del loaded
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


SCHEDULER: Final = Scheduler()
"""The scheduler of this process."""
