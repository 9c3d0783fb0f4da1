"""Pages offer the additions of installed packages like built-in ones."""

from __future__ import annotations

from pathlib import Path

from tests.dashboard.conftest import OpenPage
from tests.lab_package import InstallPackage
from tests.test_catalogues import ENTRIES, MODULES
from tests.tiny import TinyModels
from tests.whatif.trained import train


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
    assert [tile.delta for tile in page.metric if tile.label == "IsoScore"] == ["±0"]


def test_an_installed_metric_of_a_run_is_on_its_pages(
    install_package: InstallPackage, tiny_models: TinyModels, tmp_path: Path, open_page: OpenPage
) -> None:
    install_package("lab", MODULES, ENTRIES)
    run = train(tmp_path / "home", tiny_models)
    assert "Mean length" in open_page("results", results_isotropy="Mean length").dataframe[0].value.columns
    assert "Mean length" in "".join(open_page("tradeoffs").selectbox(key="tradeoffs_isotropy").options)
    assert "Mean length" in [tile.label for tile in open_page("whatif", run=run).metric]
    tables = [table.value.iloc[:, 0].tolist() for table in open_page("run", id=run).dataframe]
    assert any("Mean length" in names for names in tables)
