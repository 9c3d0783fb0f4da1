"""docs/methods.md, docs/metrics.md and docs/posthoc.md are what the catalogues say."""

from __future__ import annotations

from pathlib import Path

import pytest

from factory import reference_docs
from isoviz import methods, reference
from tests.lab_package import InstallPackage
from tests.test_catalogues import ENTRIES, MODULES


@pytest.mark.parametrize("name", reference_docs.PAGES)
def test_no_page_is_out_of_date(name: str) -> None:
    assert reference_docs.renewed(name) == (reference_docs.DOCS / name).read_text(), "run `make docs`"


def test_a_stale_page_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in reference_docs.PAGES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((reference_docs.DOCS / name).read_text())
    (tmp_path / "methods.md").write_text((tmp_path / "methods.md").read_text().replace("## IsoBN", "## IsoBM"))
    monkeypatch.setattr(reference_docs, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["reference_docs", "--check"])
    assert reference_docs.main() == 1
    assert "docs/methods.md" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["reference_docs"])
    assert reference_docs.main() == 0
    assert "## IsoBN" in (tmp_path / "methods.md").read_text()


def test_an_installed_package_is_left_out_of_the_docs(install_package: InstallPackage) -> None:
    parts = [part for page in reference_docs.PAGES.values() for part in page.values()]
    before = [part() for part in parts]
    install_package("lab", MODULES, ENTRIES)
    assert "lab_shrink" in methods.catalogue() and reference.home_package(methods.get("lab_shrink")) == "lab"
    assert reference.cost(methods.get("lab_shrink")) == ""
    assert [part() for part in parts] == before
