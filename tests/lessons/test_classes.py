"""A class in memory: each guess counted once, limits held, everything forgotten."""

from __future__ import annotations

import pytest

from isoviz import lessons
from isoviz.errors import InputError
from isoviz.lessons import classes
from isoviz.lessons.classes import Classes, NoClassError, OpenClass
from tests.lessons.test_lessons import GOOD

FIRST = lessons.catalogue()[0]


@pytest.fixture
def class_store() -> Classes:
    return Classes()


def opened(class_store: Classes) -> OpenClass:
    return class_store.open(lessons.catalogue(), FIRST.slug)


def test_a_guess_counts_once_and_the_first_one_stays(class_store):
    open_class = opened(class_store)
    assert class_store.join(open_class.code.lower(), "ada") == FIRST.slug
    for value in (0.5, 0.5, 0.75):
        class_store.guess(open_class.code, "ada", FIRST.slug, 1, value)
    class_store.guess(open_class.code, "bob", FIRST.slug, 1, 0.25)
    assert class_store.guesses(open_class.code, open_class.key) == (2, {FIRST.slug: {1: [0.25, 0.5]}})


@pytest.mark.parametrize(
    ("lesson", "step", "value", "named"),
    [
        ("nothing", 1, 0.5, "lesson"),
        (FIRST.slug, 0, 0.5, "step"),
        (FIRST.slug, 9, 0.5, "step"),
        (FIRST.slug, 1, float("nan"), "guess"),
        (FIRST.slug, 1, float("inf"), "guess"),
        (FIRST.slug, 1, 99.0, "guess"),
        ("clusters", 1, -1.0, "guess"),
    ],
)
def test_a_guess_that_no_one_can_make_is_refused(class_store, lesson, step, value, named):
    open_class = opened(class_store)
    with pytest.raises(InputError, match=named):
        class_store.guess(open_class.code, "ada", lesson, step, value)
    assert class_store.guesses(open_class.code, open_class.key) == (0, {})


def test_only_the_key_shows_and_closes_a_class(class_store):
    open_class = opened(class_store)
    for code, key in (("AAAAA", open_class.key), (open_class.code, "wrong"), (open_class.code, "")):
        with pytest.raises(NoClassError, match="No open class has the code"):
            class_store.guesses(code, key)
        with pytest.raises(NoClassError):
            class_store.close(code, key)
    class_store.close(open_class.code, open_class.key)
    with pytest.raises(NoClassError):
        class_store.join(open_class.code, "ada")


def test_classes_and_students_are_limited(class_store, monkeypatch):
    monkeypatch.setattr(classes, "MOST_CLASSES", 2)
    monkeypatch.setattr(classes, "MOST_STUDENTS", 2)
    open_class, _ = opened(class_store), opened(class_store)
    with pytest.raises(InputError, match="2 classes are open"):
        opened(class_store)
    for student in ("ada", "bob", "ada"):
        class_store.join(open_class.code, student)
    with pytest.raises(InputError, match="full: 2 students"):
        class_store.guess(open_class.code, "eve", FIRST.slug, 1, 0.5)


def test_students_follow_the_lesson_that_the_teacher_shows(class_store):
    open_class = opened(class_store)
    assert class_store.join(open_class.code, "ada") == FIRST.slug
    class_store.show(open_class.code, open_class.key, "clusters")
    assert class_store.join(open_class.code, "ada") == "clusters"
    with pytest.raises(NoClassError):
        class_store.show(open_class.code, "wrong", FIRST.slug)
    with pytest.raises(InputError, match="lesson: unknown lesson 'none'"):
        class_store.show(open_class.code, open_class.key, "none")
    assert class_store.join(open_class.code, "bob") == "clusters"


def test_wrong_codes_stop_sign_in_for_a_minute():
    now = [0.0]
    class_store = Classes(clock=lambda: now[0])
    open_class = opened(class_store)
    for _ in range(classes.WRONG_PER_MINUTE - 1):
        with pytest.raises(NoClassError):
            class_store.admit("AAAAA")
    assert class_store.admit(f" {open_class.code.lower()} ") == open_class.code
    with pytest.raises(NoClassError):
        class_store.admit("AAAAA")
    for now[0] in (0.0, 59.0):
        with pytest.raises(InputError, match="Too many wrong codes"):
            class_store.admit(open_class.code)
    now[0] = 60.0
    assert class_store.admit(open_class.code) == open_class.code
    minutes = len(classes._LETTERS) ** classes._LENGTH / 2 / classes.WRONG_PER_MINUTE
    assert minutes > 365 * 24 * 60, "half of all codes take more than a year"


def test_an_idle_class_is_forgotten():
    now = [0.0]
    class_store = Classes(clock=lambda: now[0])
    open_class = opened(class_store)
    now[0] += classes.IDLE_SECONDS - 1
    class_store.join(open_class.code, "ada")
    now[0] += classes.IDLE_SECONDS - 1
    assert class_store.guesses(open_class.code, open_class.key)[0] == 1
    now[0] += classes.IDLE_SECONDS
    with pytest.raises(NoClassError):
        class_store.guesses(open_class.code, open_class.key)


def test_your_own_lessons_are_read_and_faults_named(tmp_path):
    assert lessons.custom(tmp_path / "missing") == ([], [])
    (tmp_path / "good.toml").write_text(GOOD)
    (tmp_path / "bad.toml").write_text(GOOD.replace('title = "Mine"\nidea = "Does it move?"\n', ""))
    (tmp_path / "large.toml").write_text("#" * 200_000)
    read, problems = lessons.custom(tmp_path)
    assert [lesson.slug for lesson in read] == ["mine"]
    assert problems == [
        "bad.toml: title: field required",
        "large.toml: too large for a lesson (at most 100,000 bytes)",
    ]
