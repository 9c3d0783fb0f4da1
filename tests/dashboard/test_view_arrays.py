"""A view's arrays on their way to the browser: small, exact to a byte, and missing ones."""

from __future__ import annotations

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server import routes, view_arrays
from dashboard.shared import wording
from isoviz.exploring.results import ViewResult
from isoviz.jobs.results import ARRAYS


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=routes.routes()))


@pytest.mark.parametrize("layer", [1, 2])
def test_matrix_comes_as_half_a_triangle_with_its_order(layer: int, client: TestClient, kept_view: ViewResult) -> None:
    key = kept_view.folder.name
    path = f"/isoviz/views/{key}/{layer}/cls"
    cells = np.frombuffer(client.get(f"{path}/matrix").content, np.uint8)
    order = np.frombuffer(client.get(f"{path}/order").content, "<i4")
    assert sorted(order) == list(range(16)) and len(cells) == 16 * 15 // 2
    stored = kept_view.array(layer, "cls", "correlation")
    assert (stored is None) is (layer == 1)  # made when it is asked for, from the kept points
    points = np.abs(np.corrcoef(kept_view.points(layer, "cls"), rowvar=False))[np.ix_(order, order)]
    exact = points if stored is None else stored / 255
    places = [(row, column) for row in range(16) for column in range(row)]
    for cell, place in zip(cells, places, strict=True):
        assert cell / 255 == pytest.approx(exact[place], abs=0.51 / 255)
    sigma = np.frombuffer(client.get(f"{path}/sigma").content, "<f4")
    np.testing.assert_array_equal(sigma, kept_view.array(layer, "cls", "sigma"))
    texts = client.get(f"{path}/texts")
    assert texts.headers["content-encoding"] == "gzip"
    assert texts.json() == [wording.cut(text) for text in kept_view.table("cls")["sentence"]]


def test_a_matrix_of_1024_dimensions_is_small() -> None:
    cells = np.arange(1024 * 1024, dtype=np.uint32).astype(np.uint8).reshape(1024, 1024)
    sent = view_arrays.triangle(cells)
    assert sent[:3] == bytes([cells[1, 0], cells[2, 0], cells[2, 1]]) and len(sent) + 2 * 4 * 1024 <= 600_000


def test_missing_arrays_of_a_view(client: TestClient, kept_view: ViewResult) -> None:
    key = kept_view.folder.name
    for path in (
        f"{key}/1/cls/cloud",
        f"{key}/9/cls/order",
        f"{key}/1/last/matrix",
        f"{'0' * 32}/1/cls/order",
        "x/1/cls/order",
    ):
        assert client.get(f"/isoviz/views/{path}").status_code == 404


def test_a_view_with_a_truncated_file_counts_as_missing(client: TestClient, kept_view: ViewResult) -> None:
    key, file = kept_view.folder.name, kept_view.folder / ARRAYS
    content = file.read_bytes()
    try:
        for length in (0, 7, 200, len(content) - 1):
            file.write_bytes(content[:length])
            for name in ("matrix", "order", "sigma"):
                view_arrays._computed.cache_clear()
                answer = client.get(f"/isoviz/views/{key}/2/cls/{name}")
                assert answer.status_code == 404, (length, name)
    finally:
        file.write_bytes(content)
