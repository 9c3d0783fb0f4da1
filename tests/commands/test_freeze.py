"""`isoviz freeze`: a page of the app as one file, with the app's numbers; the gallery of docs/static.md has today's."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from streamlit.testing.v1 import AppTest

from dashboard.export import at_address
from factory.record_gallery import FOLDER, GALLERY
from isoviz import vectors
from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.vectors import demo_sets
from isoviz.vectors.sets import VectorSet
from isoviz.whatif.texts import FIRST_LAYER, TextsRequest, recorded
from tests.dashboard.reading import drawn, packages_scanned_once
from tests.dashboard.saved import saved

OWN = "/ruler?ruler_set=Your+own+vectors+or+texts&ruler_either="
RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


@pytest.fixture(scope="module", autouse=True)
def _scanned_once() -> Iterator[None]:
    with packages_scanned_once():
        yield


@pytest.fixture(autouse=True)
def _as_the_command_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")
    monkeypatch.setenv("ISOVIZ_RUNNER", "off")
    monkeypatch.setenv("ISOVIZ_SPARES", "off")


def test_the_file_has_the_numbers_of_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "explore.html"
    assert main(["freeze", f"http://localhost:8501{GALLERY['explore']}", "--out", str(file)]) == 0
    assert str(file) in capsys.readouterr().out
    written = saved(file.read_bytes())
    page = AppTest.from_file(at_address.APP, default_timeout=60).switch_page(at_address.menu.EXPLORE)
    page.query_params.update({"explore_tab": "All numbers"})  # which a file has whatever tab is open
    shown = max((frame.value for frame in page.run().dataframe), key=lambda frame: frame.size)
    page.query_params.update(parse_qs(urlsplit(GALLERY["explore"]).query))
    page.run()
    (table,) = (table for table in written.tables.values() if list(table.columns) == list(shown.columns))
    assert len(table) == len(shown) > 10
    np.testing.assert_allclose(table["IsoScore"], shown["IsoScore"].astype(float), rtol=6e-4)
    np.testing.assert_array_equal(table["n"], shown["n"])
    figures = drawn(page)
    missing = [figure["data"] for figure in figures if not any(alike(figure, one) for one in written.figures)]
    assert len(figures) == 4 and not missing
    agree((FOLDER / "explore.html").read_bytes(), file.read_bytes())
    first_tab = at_address.content("/explore")
    assert any(title.startswith("Rogue dimensions: ") for title in saved(first_tab).tables)
    assert b"of the 10 nearest neighbours stay" in first_tab


@pytest.mark.parametrize("name", sorted({*GALLERY} - {"explore"}))
def test_the_gallery_has_the_numbers_of_today(name: str) -> None:
    """If not, run `python -m factory.record_gallery`."""
    agree((FOLDER / f"{name}.html").read_bytes(), at_address.content(GALLERY[name]))


def agree(recorded: bytes, today: bytes) -> None:
    """The same figures, tables and numbers, but for the last digit, which depends on the machine."""
    old, new = saved(recorded), saved(today)
    assert len(old.figures) == len(new.figures) > 1 and [*old.codes] == [*new.codes] and [*old.tables] == [*new.tables]
    for before, after in zip(tables_of(recorded), tables_of(today), strict=True):
        assert list(before.columns) == list(after.columns) and before.shape == after.shape
        assert values_of(before) == pytest.approx(values_of(after), rel=2e-3, abs=2e-3)


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two figures have the same y values but for the last digits, which depend on the machine's load."""
    sides = [[trace.get("y", []) for trace in figure["data"]] for figure in (one, other)]
    return len(sides[0]) == len(sides[1]) and all(itertools.starmap(close, zip(*sides, strict=True)))


def close(first: Any, second: Any) -> bool:
    try:
        return np.allclose(array_of(first), array_of(second), rtol=1e-5, atol=1e-6, equal_nan=True)
    except ValueError:  # words, or different lengths
        return bool(first == second)


def array_of(values: Any) -> NDArray[np.float64]:
    """A list, or an array as plotly may write it."""
    if isinstance(values, dict):
        return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).astype(float)
    return np.array(values, float)


def tables_of(page: bytes) -> list[pd.DataFrame]:
    return pd.read_html(StringIO(page.decode().partition("<body>")[2].partition("<script")[0]))


def values_of(table: pd.DataFrame) -> list[float]:
    """All numbers in a table's text."""
    text = re.sub(
        "·10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda power: f"e{power[1].translate(RAISED)}", table.to_csv().replace("−", "-")
    )
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


def test_it_waits_for_the_jobs_of_the_page() -> None:
    points = np.random.default_rng(0).normal(size=(60, 8)) + 1
    key = vectors.keep(VectorSet(points, pd.DataFrame(index=range(60)), name="made"))
    written = saved(at_address.content(f"{OWN}{key}"))
    floor = written.tables["Quantiles of the cosines of unrelated pairs"]
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[np.triu_indices(60, 1)]
    assert floor["Cosine"][floor.iloc[:, 0].astype(str).str.contains("50")].item() == pytest.approx(
        np.median(cosines), abs=0.02
    )


def test_the_file_can_have_the_vectors_and_no_texts(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(
        at_address.content("/whatif?whatif_from=Vectors+or+texts&token=secret", ["with_vectors", "without_texts"])
    )
    assert "secret" not in file.read_text()
    inside = vectors.read(file)
    shown = vectors.load(recorded(TextsRequest(demo_sets.RETRIEVAL, layer=FIRST_LAYER)) or "")
    np.testing.assert_array_equal(inside.points, shown.points)
    assert inside.facts["saved from"].startswith("/whatif?")
    assert "text" in shown.columns and "text" not in inside.columns
    with pytest.raises(InputError) as refused:
        at_address.content("/tradeoffs", ["with_vectors"])
    assert refused.value.field == "with_vectors"


@pytest.mark.parametrize(
    ("url", "said"),
    {
        "/nowhere?x=1": "explore, whatif",
        "": "explore, whatif",
        "http://[::1/explore": "IPv6",
        "/whatif?run=nope": "'nope'",
        "/whatif?whatif_from=Vectors+or+texts&chain=nope": "'nope'",
        "/results?results_group=nope": "results_group=nope",
        "/experiments?experiment=nope": "nope",
        "/experiments": "does not name",
        "/explore?explore_task=demo/sentiment": "press Analyse",
        f"{OWN}abc": "no longer",
    }.items(),
)
def test_an_address_without_such_a_page_gives_one_line(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        at_address.content(url)
    assert refused.value.field == "address" and "\n" not in str(refused.value)


def test_the_command_refuses_it_with_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["freeze", "/nowhere", "--out", str(tmp_path / "x.html")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("isoviz: URL: ") and not (tmp_path / "x.html").exists()
    assert main(["freeze", "/explore", "--out", str(tmp_path / "x.html"), "--all-layers"]) == 2
    assert "--all-layers: only with --with-vectors" in capsys.readouterr().err
