"""The lessons: eleven of them, all true, and a validator that names the line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from isoviz import lessons
from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.lessons import checking
from isoviz.lessons.reading import ChoiceGuess, Lesson, parse
from isoviz.lessons.state import State

GOOD = """slug = "mine"
title = "Mine"
idea = "Does it move?"
show = ["isoscore"]
start = { d = 8, n = 400 }
sentence = "It moved."

[[steps]]
text = "IsoScore is {isoscore@0}."
question = "What next?"
guess = { kind = "number", of = "isoscore", low = 0, high = 1, step = 0.01 }
move = { rogueScale = 10 }
answer = "{isoscore@1}."

[[claims]]
says = "It fell."
holds = "isoscore@1 < isoscore@0"
"""


def test_there_are_eleven_in_order() -> None:
    assert [lesson.order for lesson in lessons.catalogue()] == list(range(1, 12))
    for lesson in lessons.catalogue():
        assert 3 <= len(lesson.steps) <= 4, lesson.slug
        assert any(isinstance(step.guess, ChoiceGuess) for step in lesson.steps) or lesson.slug == "clusters"


@pytest.mark.parametrize("lesson", lessons.catalogue(), ids=lambda lesson: lesson.slug)
def test_what_it_teaches_is_true(lesson: Lesson) -> None:
    assert checking.problems(lesson, seeds=(0, 1)) == []


@pytest.mark.parametrize("lesson", lessons.catalogue(), ids=lambda lesson: lesson.slug)
def test_every_number_that_a_question_or_claim_is_about_is_shown(lesson: Lesson) -> None:
    document = json.dumps(lesson.document())
    used = set(re.findall(r"\{(?:true\.)?([a-z0-9_]+)@\d\}", document))
    assert used <= set(lesson.show)
    assert all(claim["tree"] for claim in lesson.document()["claims"])
    assert all("hidden" not in state for state in lesson.document()["states"])


def test_a_lesson_with_a_false_claim_is_reported() -> None:
    wrong = parse(
        GOOD.replace("isoscore@1 < isoscore@0", "isoscore@1 > isoscore@0").replace("low = 0,", "low = 0.9,"), "m"
    )
    first, second = checking.problems(wrong, seeds=(0,))
    assert re.fullmatch(r"step 1: isoscore is 0\.\d+, which the slider from 0.9 to 1 cannot reach", first)
    assert second == "claim 1 does not hold: isoscore@1 > isoscore@0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "Mine"', "title = Mine", r"mine\.toml: .*line 2"),
        ('idea = "Does', 'idee = "Does', r"mine\.toml: idea: field required"),
        ('["isoscore"]', '["isoscor"]', r"mine\.toml: show.0: unknown number 'isoscor' \(allowed: isoscore"),
        ("d = 8", "d = 1", r"mine\.toml: start: d: .*greater than or equal to 2 \(got 1\)"),
        ("low = 0, high = 1", "low = 1, high = 0", r"mine\.toml: steps\.0\.guess\.number: low must be below high"),
        ('"{isoscore@1}."', '"{isoscore@2}."', r"mine\.toml: isoscore@2: that step has not happened yet"),
        ("isoscore@1 < isoscore@0", "isoscore@1 ~ 2", r"mine\.toml: claims\.0\.holds: a claim compares"),
    ],
)
def test_the_validator_names_the_field(old: str, new: str, message: str) -> None:
    assert old in GOOD
    parse(GOOD, "mine.toml")
    with pytest.raises(InputError, match=message) as caught:
        parse(GOOD.replace(old, new), "mine.toml")
    assert len(str(caught.value).splitlines()) <= 2


def test_the_command(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    good, bad, missing = tmp_path / "good.toml", tmp_path / "bad.toml", tmp_path / "none.toml"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("d = 8", "d = 1"))
    assert main(["lessons", "--check", str(good)]) == 0
    assert "all claims hold" in capsys.readouterr().out
    assert main(["lessons", "--check", str(good), str(bad), str(missing)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2 and "bad.toml: start: d" in lines[0] and "none.toml: cannot be read" in lines[1]


def test_a_lesson_of_your_own_is_in_the_file(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[no-untyped-def]
    own, bad, out = tmp_path / "own.toml", tmp_path / "bad.toml", tmp_path / "lessons.html"
    own.write_text(GOOD.replace('"Mine"', '"My own lesson </script>"'))
    bad.write_text(GOOD.replace("d = 8", "d = 1"))
    assert main(["lessons", "--out", str(out), "--add", str(bad)]) == 2
    assert "bad.toml: start: d" in capsys.readouterr().err and not out.exists()
    assert main(["lessons", "--out", str(out), "--add", str(own)]) == 0
    text = out.read_text()
    assert "My own lesson \\u003c/script>" in text and "Move the cloud" in text
    assert len(text) < 3_500_000 and "http://" not in text.replace("http://www.w3.org/", "")


def test_one_small_file_that_asks_for_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "lessons.html"
    assert main(["lessons", "--out", str(out)]) == 0
    assert "open it in any browser" in capsys.readouterr().out
    text = out.read_text("utf-8")
    assert len(text.encode()) < 3.5e6
    own = re.sub(r"(?m)^const LAB_SOURCE = .*$", "", text)  # one of its libraries could load files by address
    assert not re.findall(r"""\bsrc\s*=|\bhref\s*=(?!"#)|@import|url\(|fetch\(|XMLHttpRequest|WebSocket""", own)
    assert "default-src 'none'" in text  # the browser holds it to that


def test_the_docs_name_every_lesson_and_their_example_is_right() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "lessons.md").read_text()
    for lesson in lessons.catalogue():
        assert f"| [{lesson.order}. {lesson.title}](lab.html#lesson={lesson.slug}) | {lesson.sentence} |" in page
    (example,) = re.findall(r"```toml\n(.*?)```", page, flags=re.DOTALL)
    assert checking.problems(parse(example, "docs/lessons.md"), seeds=(0,)) == []


# ------------------------------------------------------------------------------------------------------- the clouds


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"spectrum": "power", "decay": 1.0, "rotation": 1},
        {"spectrum": "exponential", "decay": 3.0, "rogue": 3, "rogueScale": 4.0},
        {"spectrum": "step", "rank": 3, "floor": 0.1, "scale": 2.0},
        {"block": 4, "rho": 0.6},
        {"clusters": 3, "separation": 5.0, "shift": 1.0},
        {"tails": 6},
    ],
)
def test_a_drawn_cloud_has_the_stated_covariance(values: dict) -> None:  # type: ignore[type-arg]
    state = State(d=6, n=5000, **values)
    clouds = [checking.draw(state.model_copy(update={"seed": seed}), 0) for seed in range(40)]
    expected = checking.covariance(state, 0)
    covariance = np.mean([np.cov(cloud.T) for cloud in clouds], axis=0)
    assert np.abs(covariance - expected).max() < 0.03 * np.abs(expected).max()
