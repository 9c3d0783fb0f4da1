"""The Methods page draws every item of the three catalogues; pages offer what an installed package adds."""

from __future__ import annotations

import re
from pathlib import Path

from dashboard.methods import sections as methods_reference
from isoviz import methods, metrics, posthoc
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import texts
from tests.lab_package import InstallPackage
from tests.test_catalogues import ENTRIES, MODULES
from tests.tiny import TinyModels
from tests.whatif.trained import train


def test_every_overview_lists_its_whole_catalogue(open_page: OpenPage) -> None:
    page = open_page("methods")
    for kind in methods_reference.KINDS:
        page.segmented_control(key="methods_kind").set_value(kind.name).run()
        assert not page.exception
        table, titles = page.dataframe[0].value, [item.title for item in kind.catalogue().values()]
        assert list(table.iloc[:, 0]) == list(page.pills(key=f"methods_{kind.name.lower()}").options) == titles
        if kind.name == "Measures":  # as the tests of the measures say
            shift = table.set_index("Measure")["Shift"]
            assert shift["IsoScore"] == "same" and shift["Mean cosine"] == "moves"


def test_a_link_opens_a_method(open_page: OpenPage) -> None:
    page = open_page("methods", methods_methods="IsoBN")
    assert not page.exception and not page.dataframe
    shown = texts(page)
    isobn = methods.get("isobn")
    assert page.latex[0].value.strip("$\n ") == isobn.equation
    assert all(trap in shown for trap in isobn.traps)
    assert "default 0.5 · at least 0, at most 4 · paper's range 0.25, 0.5, 1" in shown
    assert "@article{zhou2021isobn" in page.code[0].value


def test_every_item_is_drawn(open_page: OpenPage) -> None:
    page = open_page("methods")
    for kind, items in (("Methods", methods), ("Measures", metrics), ("Transforms", posthoc)):
        page.segmented_control(key="methods_kind").set_value(kind).run()
        for slug, item in items.catalogue().items():
            page.pills(key=f"methods_{kind.lower()}").set_value(slug).run()
            assert not page.exception, slug
            assert page.latex and item.title in page.header[0].value.replace("\\", "")


def test_train_offers_an_installed_method_and_task(install_package: InstallPackage, open_page: OpenPage) -> None:
    install_package("lab", MODULES, ENTRIES)
    page = open_page("train", train_methods="Shrink", train_tasks="lab/mood")
    assert not page.exception
    assert page.multiselect(key="train_tasks").value == ["lab/mood"]
    assert page.pills(key="train_methods").value == ["lab_shrink"]


def test_what_if_moves_the_points_of_an_installed_transform_and_marks_the_step(
    install_package: InstallPackage, tiny_models: TinyModels, tmp_path: Path, open_page: OpenPage
) -> None:
    install_package("lab", MODULES, ENTRIES)
    run = train(tmp_path / "home", tiny_models)
    page = open_page("whatif", run=run, chain="lab_halve")
    assert not page.exception and not page.error
    assert "Halve" in page.selectbox(key="whatif_add").options
    assert any("slower" in element.value for element in page.markdown)
    assert any(
        re.search(r"^\| IsoScore \| (\S+) \| \1 \| ±0 \|$", element.value, re.MULTILINE) for element in page.markdown
    )
