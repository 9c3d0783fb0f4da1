"""A class: the guesses of the students who joined with its code. Kept in memory only and deleted when the class ends."""

from __future__ import annotations

import hmac
import math
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from isoviz.errors import InputError, shortened
from isoviz.lessons.reading import Lesson, NumberGuess

MOST_CLASSES = 30
MOST_STUDENTS = 300
IDLE_SECONDS = 4 * 3600.0
"""A class that has not been used for this long is deleted."""

_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # without I, L, O, 0 and 1, which are easily confused on a board
_LENGTH = 5
WRONG_PER_MINUTE = 20
"""Wrong codes from visitors who are not signed in, all together. At this rate, guessing the code of one class takes 16 months on
average, because there are 31⁵ codes. The right code is refused too until the minute is over, or the limit would not slow anyone down."""


class NoClassError(InputError):
    """No open class has this code, or the key is wrong."""


@dataclass
class OpenClass:
    """One class.

    Attributes:
        code: typed by students to join.
        key: kept by the teacher's browser; gives access to the guesses and the right to close the class.
        shown: slug of the lesson that the teacher shows; students follow it.
        lessons: by slug, unchanged since the class was opened.
        guesses: student → (slug, step counted from 1) → the value, or the index of the chosen option.
    """

    code: str
    key: str
    shown: str
    lessons: dict[str, Lesson]
    used: float
    guesses: dict[str, dict[tuple[str, int], float]] = field(default_factory=dict)


class Classes:
    """All classes of a server; thread-safe.

    Args:
        clock: a monotonic clock, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[str, OpenClass] = {}
        self._wrong: list[float] = []  # times of wrong codes from visitors who are not signed in

    def open(self, lessons: Iterable[Lesson], shown: str) -> OpenClass:
        """Open a class that starts with the lesson `shown`.

        Raises:
            InputError: no lesson has this slug, or too many classes are open.
        """
        by_slug = {lesson.slug: lesson for lesson in lessons}
        _known(by_slug, shown)
        with self._lock:
            self._forget_idle()
            if len(self._open) >= MOST_CLASSES:
                raise InputError(f"{MOST_CLASSES} classes are open on this server. Close one first.")
            code = _code()
            while code in self._open:
                code = _code()
            self._open[code] = OpenClass(code, secrets.token_urlsafe(16), shown, by_slug, self._clock())
            return self._open[code]

    def is_open(self, code: str) -> bool:
        """Whether an open class has this code."""
        with self._lock:
            self._forget_idle()
            return code.upper() in self._open

    def admit(self, code: str) -> str:
        """The code of an open class, as typed by a visitor who is not signed in.

        Raises:
            NoClassError: no open class has this code.
            InputError: too many wrong codes within a minute.
        """
        with self._lock:
            now = self._clock()
            self._wrong = [moment for moment in self._wrong if now - moment < 60]
            if len(self._wrong) >= WRONG_PER_MINUTE:
                raise InputError("Too many wrong codes on this server. Wait a minute, or open your teacher's link.")
            try:
                return self._find(code.strip()).code
            except NoClassError:
                self._wrong.append(now)
                raise

    def show(self, code: str, key: str, lesson: str) -> None:
        """Change the lesson that the students follow.

        Raises:
            NoClassError: no open class has this code and key.
            InputError: the class has no lesson with this slug.
        """
        with self._lock:
            open_class = self._find(code, key)
            _known(open_class.lessons, lesson)
            open_class.shown = lesson

    def join(self, code: str, student: str) -> str:
        """Add a student, once; returns the slug of the lesson that the teacher shows.

        Raises:
            NoClassError: no open class has this code.
            InputError: the class is full.
        """
        with self._lock:
            open_class = self._find(code)
            self._guesses_of(open_class, student)
            return open_class.shown

    def guess(self, code: str, student: str, lesson: str, step: int, value: float) -> None:
        """Record a student's first guess at a question; later and repeated guesses change nothing.

        Raises:
            NoClassError: no open class has this code.
            InputError: an unknown lesson or step, an impossible guess, or the class is full.
        """
        with self._lock:
            open_class = self._find(code)
            _check(open_class, lesson, step, value)
            self._guesses_of(open_class, student).setdefault((lesson, step), value)

    def guesses(self, code: str, key: str) -> tuple[int, dict[str, dict[int, list[float]]]]:
        """The number of students and their guesses by lesson and step, in no particular order.

        Raises:
            NoClassError: no open class has this code and key.
        """
        with self._lock:
            open_class = self._find(code, key)
            by_lesson: dict[str, dict[int, list[float]]] = {}
            for student_guesses in open_class.guesses.values():
                for (lesson, step), value in student_guesses.items():
                    by_lesson.setdefault(lesson, {}).setdefault(step, []).append(value)
            for steps in by_lesson.values():
                for values in steps.values():
                    values.sort()
            return len(open_class.guesses), by_lesson

    def close(self, code: str, key: str) -> None:
        """Delete a class and all its guesses.

        Raises:
            NoClassError: no open class has this code and key.
        """
        with self._lock:
            open_class = self._find(code, key)
            del self._open[open_class.code]

    def _find(self, code: str, key: str | None = None) -> OpenClass:
        self._forget_idle()
        open_class = self._open.get(code.upper())
        if open_class is None or (key is not None and not hmac.compare_digest(open_class.key.encode(), key.encode())):
            raise NoClassError(f"No open class has the code {shortened(code.upper(), 20)}. Check the code.")
        open_class.used = self._clock()
        return open_class

    def _guesses_of(self, open_class: OpenClass, student: str) -> dict[tuple[str, int], float]:
        if student not in open_class.guesses and len(open_class.guesses) >= MOST_STUDENTS:
            raise InputError(f"This class is full: {MOST_STUDENTS} students have joined.")
        return open_class.guesses.setdefault(student, {})

    def _forget_idle(self) -> None:
        current_time = self._clock()
        self._open = {
            code: open_class for code, open_class in self._open.items() if current_time - open_class.used < IDLE_SECONDS
        }


def _code() -> str:
    return "".join(secrets.choice(_LETTERS) for _ in range(_LENGTH))


def _known(lessons: Mapping[str, Lesson], slug: str) -> Lesson:
    if slug not in lessons:
        raise InputError.at("lesson", f"unknown lesson '{shortened(slug)}'")
    return lessons[slug]


def _check(open_class: OpenClass, slug: str, step: int, value: float) -> None:
    lesson = _known(open_class.lessons, slug)
    if not 1 <= step <= len(lesson.steps):
        raise InputError.at("step", f"expected 1 to {len(lesson.steps)}, got {shortened(step)}")
    guess = lesson.steps[step - 1].guess
    if isinstance(guess, NumberGuess):
        low, high, allowed = guess.low, guess.high, math.isfinite(value)
    else:
        low, high, allowed = 0, len(guess.options) - 1, math.isfinite(value) and value == int(value)
    if not (allowed and low <= value <= high):
        kind = "a number" if isinstance(guess, NumberGuess) else "a whole number"
        raise InputError.at("guess", f"expected {kind} from {low:g} to {high:g}, got {shortened(value)}")
