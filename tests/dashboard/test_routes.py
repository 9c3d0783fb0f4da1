"""The routes of the live path and of Explore's arrays: who may read what, cursors, bytes, and that they work below a base path."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
from starlette.applications import Starlette
from starlette.testclient import TestClient

from dashboard.server import arrays, routes
from dashboard.shared import wording
from isoviz.events import Stepped
from isoviz.exploring.results import ViewResult
from isoviz.jobs.results import ARRAYS
from isoviz.runs.reading import RunReader
from isoviz.runs.store import Store, StoreUnavailableError
from tests.story import Story


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=routes.routes()))


def kinds(answer: dict[str, object]) -> list[str]:
    return [event["kind"] for _, event in answer["rows"]]  # type: ignore[index, attr-defined]


def test_events_come_in_order_after_the_cursor(store: Store, client: TestClient) -> None:
    run = Story(store).begin().walk(1, 3)
    first = client.get(f"/isoviz/events/{run.id}").json()
    assert kinds(first) == ["entered", "started", "evaluated", "measured", "stepped", "stepped", "stepped"]
    assert (first["status"], first["more"], first["stopping"]) == ("running", False, False)
    cursor = first["rows"][-1][0]
    assert client.get(f"/isoviz/events/{run.id}?after={cursor}").json()["rows"] == []
    run.walk(4, 5)
    later = client.get(f"/isoviz/events/{run.id}?after={cursor}").json()["rows"]
    assert [event["step"] for _, event in later] == [4, 5]


def test_a_long_run_comes_in_batches_that_miss_nothing(
    store: Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "BATCH", 4)
    run = Story(store).begin().walk(1, 9)
    seen: list[int] = []
    more = True
    while more:
        after = seen[-1] if seen else 0
        answer = client.get(f"/isoviz/events/{run.id}?after={after}").json()
        seen += [seq for seq, _ in answer["rows"]]
        more = answer["more"]
    assert seen == list(range(1, 14))


def _step(step: int) -> Stepped:
    return Stepped(
        step=step, epoch=0.1, losses={"task": 1.0}, learning_rate=1e-3, samples_per_second=1.0, eta_seconds=1.0
    )


def test_events_are_slim_and_always_json(store: Store, client: TestClient) -> None:
    run = Story(store, dimensions=80).begin()
    run.say(_step(1).model_copy(update={"losses": {"task": float("nan"), "istar": float("inf")}}))
    answer = client.get(f"/isoviz/events/{run.id}")
    events = {event["kind"]: event for _, event in answer.json()["rows"]}
    assert events["stepped"]["losses"] == {"task": None, "istar": None}
    assert set(events["measured"]["clouds"]) == {"head", "layers", "output"}
    assert len(events["measured"]["clouds"]["head"]["ev"]) == routes.EV_SHOWN
    assert "by_layer" not in events["measured"]
    assert events["measured"]["timing"] == {"train_seconds": 0.0, "evaluate_seconds": 4.0, "measure_seconds": 3.0}
    assert "versions" not in events["started"]


@pytest.mark.parametrize("run", ["..%2f..%2fetc", "%00", "a" * 65])
def test_strange_ids_lead_nowhere(store: Store, client: TestClient, run: str) -> None:
    Story(store).begin()
    for path in (f"/isoviz/events/{run}", f"/isoviz/arrays/{run}/0/matrix"):
        assert client.get(path).status_code == 404


@pytest.mark.parametrize("after", ["-1", "²", "9" * 19])
def test_a_bad_cursor_is_refused(store: Store, client: TestClient, after: str) -> None:
    run = Story(store).begin()
    answer = client.get(f"/isoviz/events/{run.id}", params={"after": after})
    assert answer.status_code == 400


def test_a_deleted_run_and_a_store_that_is_away(
    store: Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Story(store).complete()
    store.delete(run.id)
    assert client.get(f"/isoviz/events/{run.id}").status_code == 404

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("locked for too long")

    monkeypatch.setattr(RunReader, "get", away)
    assert client.get(f"/isoviz/events/{run.id}").status_code == 503


def test_the_matrix_is_half_a_triangle_in_clustered_order(store: Store, client: TestClient) -> None:
    run = Story(store, dimensions=24).begin()
    path = f"/isoviz/arrays/{run.id}/0"
    cells = np.frombuffer(client.get(f"{path}/matrix").content, np.uint8)
    order = np.frombuffer(client.get(f"{path}/order").content, "<i4")
    stored = load_file(store.folder_of(run.id) / "arrays" / "epoch-000.safetensors")
    assert sorted(order) == list(range(24))
    assert len(cells) == 24 * 23 // 2
    exact = stored["abs_correlation"][np.ix_(order, order)][np.tril_indices(24, -1)]
    np.testing.assert_allclose(cells / 255, exact, rtol=0, atol=0.5 / 255 + 1e-6)
    std = np.frombuffer(client.get(f"{path}/std").content, "<f4")
    np.testing.assert_array_equal(std, stored["std"])
    ev = np.frombuffer(client.get(f"{path}/ev").content, "<f4")
    np.testing.assert_array_equal(ev, stored["ev"])


def test_a_damaged_array_file_counts_as_missing(store: Store, client: TestClient) -> None:
    run = Story(store).begin()
    path = store.folder_of(run.id) / "arrays" / "epoch-000.safetensors"
    path.write_bytes(path.read_bytes()[:200])
    for name in ("matrix", "order", "std", "ev"):
        answer = client.get(f"/isoviz/arrays/{run.id}/0/{name}")
        assert (answer.status_code, answer.text) == (404, "the file of this epoch's arrays is damaged")


def test_health_names_no_run(store: Store, client: TestClient) -> None:
    run = Story(store).begin()
    answer = client.get("/isoviz/health")
    assert answer.json()["status"] == "ok"
    assert (answer.json()["running"], answer.json()["runner"]) == (1, "off")
    assert run.id not in answer.text


def test_plotly_comes_from_the_installed_package(client: TestClient) -> None:
    plain = client.get(f"/{routes.plotly_path()}", headers={"accept-encoding": "identity"})
    assert "Plotly" in plain.text[-5000:] or "plotly" in plain.text[:2000]
    with client.stream("GET", f"/{routes.plotly_path()}", headers={"accept-encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
    assert len(raw) < 0.4 * len(plain.content)
    assert gzip.decompress(raw) == plain.content


def test_basic_plotly_is_the_published_file_of_the_same_series(client: TestClient) -> None:
    path = routes.basic_plotly_path()
    served = client.get(f"/{path}", headers={"accept-encoding": "gzip"})
    assert served.status_code == 200 and "immutable" in served.headers["cache-control"]
    published = (Path(routes.__file__).parents[1] / "plotly_basic" / "plotly-basic.min.js").read_bytes()
    assert published in served.content
    full = client.get(f"/{routes.plotly_path()}").text[:200]
    series = [re.search(r"plotly\.js .*?v(\d+)\.", text) for text in (published[:200].decode(), full)]
    assert len({match[1] for match in series if match}) == 1, "renew the basic part: dashboard/plotly_basic/README.md"


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
    np.testing.assert_allclose(cells / 255, exact[np.tril_indices(16, -1)], rtol=0, atol=0.51 / 255)
    sigma = np.frombuffer(client.get(f"{path}/sigma").content, "<f4")
    np.testing.assert_array_equal(sigma, kept_view.array(layer, "cls", "sigma"))
    texts = client.get(f"{path}/texts")
    assert texts.headers["content-encoding"] == "gzip"
    assert texts.json() == [wording.cut(text) for text in kept_view.table("cls")["sentence"]]


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
                arrays._computed.cache_clear()
                answer = client.get(f"/isoviz/views/{key}/2/cls/{name}")
                assert answer.status_code == 404, (length, name)
    finally:
        file.write_bytes(content)
