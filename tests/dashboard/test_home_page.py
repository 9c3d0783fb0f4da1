"""Home: inviting on an empty store, a list of runs on a full one, numbers computed from the clouds it shows."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard import home
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, fail, finish


def text(page: object) -> str:
    return "\n".join(item.value.replace("\\", "") for item in [*page.markdown, *page.caption])  # type: ignore[attr-defined]


def test_empty_store_says_what_to_press(open_page: OpenPage) -> None:
    page = open_page("home")
    assert not page.exception
    assert page.title[0].value == "IsoViz"
    assert "No run yet. Start with the 60-second demo" in text(page)
    assert [button.label for button in page.button] == [
        "Start these 3 runs",
        "Set up these 3 runs",
        "Set up these 24 runs",
        "Set up these 10 runs",
    ]
    assert "more isotropic" in text(page) and "million parameters" in text(page)


def test_card_leads_to_the_filled_form(open_page: OpenPage) -> None:
    page = open_page("home").button(key="card_isobn").click().run()
    assert not page.exception
    assert page.title[0].value == "Train" and page.text_input(key="train_seeds").value == "0 1 2 3 4"


def test_the_demo_starts_with_one_press(open_page: OpenPage, store: Store) -> None:
    page = open_page("home").button(key="start_demo").click().run()
    assert not page.exception and page.title[0].value == "Live"
    rows = store.list(order="oldest")
    assert [row.config.method for row in rows] == ["baseline", "isobn", "istar"]
    assert {row.status for row in rows} == {"queued"} and len({row.group for row in rows}) == 1


def test_runs_are_listed_with_their_state(open_page: OpenPage, store: Store) -> None:
    finish(store, config("istar", 0, {"lam": 1}), 0.875, 0.25, collapsed="predicts one class")
    fail(store, config("isobn"))
    store.create([config()])
    shown = text(open_page("home"))
    assert "1 queued · 1 finished · 1 failed" in shown
    assert "accuracy 0.875, IsoScore* 0.250, collapsed: predicts one class" in shown and "next in the queue" in shown
    assert "out of *memory* <b>" in shown  # as text


def test_clouds_show_what_their_captions_claim() -> None:
    measured = {title: [float(value) for value in home.measured(points)] for title, points in home.clouds().items()}
    assert measured["Round"][0] > 0.98 and abs(measured["Round"][1]) < 0.02
    assert measured["Stretched"][0] < 0.2 and abs(measured["Stretched"][1]) < 0.02
    assert measured["Round, moved"][0] == measured["Round"][0] and measured["Round, moved"][1] > 0.9
    points = home.clouds()["Stretched"]
    eigenvalues = np.linalg.eigvalsh(np.cov(points.T))
    ratio = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()  # participation ratio
    assert measured["Stretched"][0] == pytest.approx((ratio - 1) / (2 - 1), abs=0.005)


def test_cloud_picture_has_all_points_inside() -> None:
    for points in home.clouds().values():
        assert home.cloud_svg(points).count("<circle") == home.POINTS
        assert np.abs(points).max() < home._SPAN


def test_model_facts_are_those_of_the_files() -> None:
    other = home.model_facts("demo/tiny-bart")
    assert (other["family"], other["layers"], other["width"]) == ("BART", 5, 128)
    facts = home.model_facts("demo/tiny-bert")
    assert facts["parameters"] > 500_000 and facts["bytes"] < 10_000_000
