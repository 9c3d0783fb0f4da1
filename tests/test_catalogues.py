"""Open catalogues: an installed package adds methods, transforms and tasks; a broken one is left out, never a crash."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from isoviz import methods, metrics, posthoc, tasks
from tests.lab_package import InstallPackage

METHOD = """
    from isoviz.methods.protocol import Method

    class Shrink(Method):
        slug = "lab_shrink"
        title = "Shrink"
        summary = "Halves every representation."
"""
TRANSFORM = """
    import numpy as np

    from isoviz.posthoc import zca  # while the catalogue is being made
    from isoviz.posthoc.protocol import CataloguedTransform, Learnt, Paper

    class Halve(CataloguedTransform):
        slug = "lab_halve"
        title = "Halve"
        summary = "Halves every coordinate."
        equation = "x / 2"
        paper = zca.paper
        ARRAYS = {"centre": "d"}

        def learn(self, x, eps):
            return Learnt({"centre": x.mean(axis=0)})

        def apply(self, x, learnt):
            return x / 2
"""
TASK = """
    from isoviz.tasks.protocol import Task

    TASKS = (
        Task(
            slug="lab/mood",
            title="Mood",
            description="Is this note cheerful?",
            columns=("sentence",),
            label_names=("gloomy", "cheerful"),
            metrics=("accuracy",),
            source="The lab",
            licence="CC0",
        ),
    )
"""
METRIC = """
    import numpy as np

    from isoviz.metrics.cloud import Estimate
    from isoviz.metrics.protocol import Metric

    def lab_length(points):
        return float(np.linalg.norm(points, axis=1).mean())

    METRICS = Metric(
        slug="lab_length",
        title="Mean length",
        sees="How long the vectors are.",
        function=lab_length,
        estimate=lambda sample: Estimate(lab_length(sample.points)),
        minimum=1,
        from_sums=False,
        headline=True,
    )
"""
MODULES = {"shrink": METHOD, "halve": TRANSFORM, "mood": TASK, "length": METRIC}
ENTRIES = {
    "isoviz.methods": {"shrink": "lab.shrink"},
    "isoviz.transforms": {"halve": "lab.halve:Halve"},
    "isoviz.tasks": {"mood": "lab.mood"},
    "isoviz.metrics": {"length": "lab.length"},
}


@pytest.mark.parametrize("slug", [*methods.catalogue(), *posthoc.catalogue()])
def test_every_method_and_transform_explains_itself(slug: str) -> None:
    for item in (catalogue()[slug] for catalogue in (methods.catalogue, posthoc.catalogue) if slug in catalogue()):
        assert item.title and item.equation and item.summary.endswith("."), slug
        assert slug == "baseline" or ("@" in item.paper.bibtex and "author=" in item.paper.bibtex), slug
        for name, field in item.Params.model_fields.items():
            assert field.title and field.description and field.json_schema_extra["source"], name
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert slug not in methods.catalogue() or f"`{slug}`" in readme, "its list of methods"


def test_an_installed_package_adds_to_every_catalogue(install_package: InstallPackage) -> None:
    install_package("lab", MODULES, ENTRIES)
    assert methods.get("lab_shrink").title == "Shrink"
    assert next(iter(methods.catalogue())) == "baseline"
    assert tasks.get("lab/mood").title == "Mood"
    points = np.arange(12.0).reshape(4, 3)
    assert np.array_equal(posthoc.lab_halve().fit(points).transform(points), points / 2)
    lengths = np.linalg.norm(points, axis=1)
    assert metrics.lab_length(points) == metrics.describe(points)["lab_length"] == lengths.mean()


@pytest.mark.parametrize(
    ("modules", "group", "entry", "reason"),
    [
        ({}, "isoviz.methods", "lab.absent", "cannot be imported (ModuleNotFoundError"),
        ({"broken": "1 / 0"}, "isoviz.tasks", "lab.broken", "cannot be imported (ZeroDivisionError"),
        ({"leaving": "import sys; sys.exit(3)"}, "isoviz.tasks", "lab.leaving", "cannot be imported (SystemExit"),
        ({"empty": ""}, "isoviz.methods", "lab.empty", "holds no subclass of Method with a slug"),
        ({"empty": ""}, "isoviz.tasks", "lab.empty", "holds no 'TASKS' with a Task"),
        ({"text": "TASKS = 'demo'"}, "isoviz.tasks", "lab.text", "is a str, not a Task"),
        ({"m": METHOD + "    Shrink.slug = 'istar'"}, "isoviz.methods", "lab.m", "'istar' is already taken"),
        ({"m": METHOD + "    Shrink.slug = 'a+b'"}, "isoviz.methods", "lab.m", "got 'a+b'"),
        ({"t": TRANSFORM + "    Halve.slug = 'chain'"}, "isoviz.transforms", "lab.t", "'chain' is already taken"),
        ({"t": TASK.replace("lab/mood", "own")}, "isoviz.tasks", "lab.t", "'own' is already taken"),
    ],
)
def test_a_broken_or_clashing_entry_is_left_out_with_one_line(
    modules: dict[str, str],
    group: str,
    entry: str,
    reason: str,
    install_package: InstallPackage,
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = [list(catalogue()) for catalogue in (methods.catalogue, posthoc.catalogue, tasks.catalogue)]
    install_package("lab", modules, {group: {"broken": entry}})
    with caplog.at_level(logging.WARNING):
        assert [list(catalogue()) for catalogue in (methods.catalogue, posthoc.catalogue, tasks.catalogue)] == before
    (line,) = caplog.messages
    assert line.startswith("Ignored 'broken' of the installed package lab") and reason in line


def test_the_first_of_two_packages_with_one_name_wins(
    install_package: InstallPackage, caplog: pytest.LogCaptureFixture
) -> None:
    install_package("second", {"shrink": METHOD}, {"isoviz.methods": {"shrink": "second.shrink"}})
    install_package(
        "first", {"shrink": METHOD}, {"isoviz.methods": {"shrink": "first.shrink", "again": "first.shrink:Shrink"}}
    )
    assert methods.get("lab_shrink").__module__ == "first.shrink"
    (line,) = caplog.messages
    assert "package second" in line
