"""What a package installed beside us adds is offered on the pages like ours."""

from __future__ import annotations

from tests.dashboard.conftest import OpenPage
from tests.lab_package import InstallPackage
from tests.test_catalogues import ENTRIES, MODULES


def test_train_offers_an_installed_method_and_task(install_package: InstallPackage, open_page: OpenPage) -> None:
    install_package("lab", MODULES, ENTRIES)
    page = open_page("train", train_methods="Shrink", train_tasks="lab/mood")
    assert not page.exception
    assert page.multiselect(key="train_tasks").value == ["lab/mood"]
    assert page.pills(key="train_methods").value == ["lab_shrink"]
