"""The HTTP API with access control: who may call it, what is refused, and runs from launch to comparison."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

import isoviz
from dashboard.server import api_routes, routes
from dashboard.server.authentication import Authentication
from dashboard.shared import resources, visitor
from isoviz import allowed_paths
from isoviz.jobs import guarded
from isoviz.operations.access import service as access
from isoviz.operations.access.allowed_hosts import API_WRITES, READ_ONLY, AllowedHosts
from isoviz.operations.access.policy import ROOTS
from isoviz.operations.access.visitors import Role
from isoviz.operations.table import operations
from isoviz.runs.store import Store
from tests.commands.test_mcp import READING
from tests.dashboard.made_up import config, finish

SMALL = {"epochs": 1, "max_train": 32, "max_eval": 16, "batch_size": 16}


@pytest.fixture
def client(store: Store, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """Behind the door of a server with links."""
    sign_in = visitor.ByLink(lambda: store.folder, "isoviz_0")
    monkeypatch.setattr(visitor, "_sign_in", sign_in)
    inner = Starlette(routes=routes.routes())

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await Authentication(inner, sign_in, AllowedHosts(None, hosts=frozenset({"testserver"})))(scope, receive, send)

    return TestClient(app)


def signed_in(client: TestClient, role: Role) -> TestClient:
    sign_in = visitor._sign_in
    assert isinstance(sign_in, visitor.ByLink)
    client.headers["authorization"] = f"Bearer {sign_in.links().secrets[role]}"
    return client


def call(client: TestClient, operation: str, **arguments: Any) -> tuple[int, Any]:
    answer = client.post(f"/isoviz/api/{operation}", json=arguments)
    return answer.status_code, answer.json()


def test_without_a_links_secret_nothing_is_answered(client: TestClient) -> None:
    for authorization in ("", "Bearer ", "Bearer wrong", "Basic wrong"):
        client.headers["authorization"] = authorization
        assert client.get("/isoviz/api").status_code == 401
        refused = client.post("/isoviz/api/list_runs")
        assert refused.status_code == 401 and "Bearer SECRET" in refused.json()["error"]
    signed_in(client, Role.OPERATOR)
    assert client.get("/live").status_code == 401  # the secret in a header opens no page


def test_the_index_lists_what_the_server_offers(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(client, Role.VIEWER)
    listed = {operation["name"]: operation for operation in client.get("/isoviz/api").json()["operations"]}
    assert list(listed) == READING
    assert listed["list_runs"]["arguments"]["properties"]["limit"]["default"] == 20
    assert "newest first" in listed["list_runs"]["description"]
    monkeypatch.setenv(API_WRITES, "1")
    assert "launch_runs" in client.get("/isoviz/api").text


def test_a_viewer_reads_runs_and_compares_them(client: TestClient, store: Store) -> None:
    ids = [finish(store, config(method, seed), 0.5, 0.25) for method in ("baseline", "istar") for seed in (0, 1)]
    signed_in(client, Role.VIEWER)
    status, reply = call(client, "list_runs", limit=3)
    assert (status, [run["id"] for run in reply["runs"]]) == (200, ids[:0:-1])
    assert call(client, "show_run", id=ids[0])[1]["runs"][0]["status"] == "finished"
    compared = call(client, "compare_runs", ids=ids)[1]["parts"][0]
    assert [arm["label"] for arm in compared["arms"]][:1] == ["Baseline"]
    assert call(client, "catalogue", kind="tasks")[1]["tasks"]
    assert call(client, "measure", model="demo/tiny-bert")[0] == 403


def test_launching_must_be_switched_on(client: TestClient, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in(client, Role.RUNNER)
    status, refused = call(client, "launch_runs", method=["baseline"], settings=SMALL)
    assert (status, refused["error"]) == (403, "This server's API is read-only") and "--api-writes" in refused["advice"]
    monkeypatch.setenv(API_WRITES, "1")
    status, launched = call(client, "launch_runs", method=["baseline"], experiment="by program", settings=SMALL)
    assert status == 200 and [row.id for row in store.list(group="by program")] == launched["ids"]
    status, again = call(client, "launch_runs", method=["baseline", "isobn"], settings=SMALL)
    assert (status, again["existing"], len(again["ids"])) == (200, launched["ids"], 1)
    nothing_new = call(client, "launch_runs", method=["baseline"], settings=SMALL)[1]
    assert nothing_new == {"experiment": None, "ids": [], "existing": launched["ids"]}
    assert len(call(client, "launch_runs", method=["baseline"], settings=SMALL, repeat=True)[1]["ids"]) == 1
    assert call(client, "stop_run", id=launched["ids"][0])[1]["runs"][0]["status"] == "stopped"
    assert call(client, "resume_run", id=launched["ids"][0])[1]["runs"][0]["status"] == "queued"
    operators = store.create([config()])[0]
    assert call(client, "stop_run", id=operators)[0] == 403
    signed_in(client, Role.VIEWER)
    assert call(client, "stop_run", id=launched["ids"][0])[0] == 403
    monkeypatch.setenv(READ_ONLY, "1")
    assert call(signed_in(client, Role.OPERATOR), "stop_run", id=operators)[0] == 403


def test_the_ruler_of_a_file_and_of_texts_only_below_the_roots(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    monkeypatch.setenv(ROOTS, str(tmp_path / "open"))
    points = np.random.default_rng(0).standard_normal((64, 8))
    for folder in (tmp_path, tmp_path / "open"):
        np.save(folder / "points.npy", points)
        (folder / "own.txt").write_text("\n".join(f"The cat number {row} sleeps in the house." for row in range(30)))
    assert call(signed_in(client, Role.VIEWER), "ruler", model="demo/tiny-bert")[0] == 403
    signed_in(client, Role.RUNNER)
    monkeypatch.setattr(
        allowed_paths, "_allowed_roots", lambda: resources._roots()
    )  # as `guard_files` does in the server
    for field, name, more in (("embeddings", "points.npy", {}), ("texts", "own.txt", {"model": "demo/tiny-bert"})):
        status, refused = call(client, "ruler", **more, **{field: str(tmp_path / name)})
        assert (status, refused["field"]) == (400, field)
    status, reply = call(client, "ruler", embeddings=str(tmp_path / "open" / "points.npy"), cosine=[0.62])
    assert status == 200 and reply["floor"] == isoviz.ruler(points).model_dump()["floor"]
    assert reply["readings"][0]["percentile"] == isoviz.ruler(points).read(0.62).percentile
    texts = {"texts": str(tmp_path / "open" / "own.txt"), "model": "demo/tiny-bert"}
    status, reply = call(client, "ruler", **texts)
    assert status == 200 and reply["related"] is None


def test_compare_check_upgrade_and_rows_read_below_the_roots_only(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "open").mkdir()
    monkeypatch.setenv(ROOTS, str(tmp_path / "open"))
    points = np.random.default_rng(0).standard_normal((64, 8))
    links = np.stack([np.arange(40), np.arange(40)], axis=1)
    for folder in (tmp_path, tmp_path / "open"):
        for name, array in (
            ("old.npy", points),
            ("new.npy", points[:, :6]),
            ("asked.npy", points[:40]),
            ("links.npy", links),
        ):
            np.save(folder / name, array)
        np.save(folder / "asked6.npy", points[:40, :6])
        isoviz.baseline(points).write(folder / "before.json")
    signed_in(client, Role.RUNNER)
    monkeypatch.setattr(allowed_paths, "_allowed_roots", lambda: resources._roots())
    for given in (
        {"encoders": ["old.npy", "new.npy"], "queries": ["asked.npy", "asked6.npy"], "relevance": "links.npy"},
        {"vectors": "old.npy", "baseline": "before.json", "same_rows": True},
        {"old": "old.npy", "new": "new.npy"},
        {"input": "old.npy", "chain": "zca"},
        {"embeddings": "old.npy"},
    ):
        name = {
            "encoders": "compare",
            "vectors": "check",
            "old": "upgrade",
            "embeddings": "rows",
            "input": "transform",
        }[next(iter(given))]

        def below(folder: Path, value: object) -> object:
            return [str(folder / one) for one in value] if isinstance(value, list) else str(folder / str(value))

        def placed(folder: Path, given: dict[str, object] = given) -> dict[str, object]:
            return {key: value if value in (True, "zca") else below(folder, value) for key, value in given.items()}

        assert call(client, name, **placed(tmp_path))[0] == 400
        status, reply = call(client, name, **placed(tmp_path / "open"))
        assert status == 200, reply
        assert {"sentences", "ok", "recall10", "neighbours"} & set(reply)


def test_measure_keeps_to_the_limits_of_reading_and_the_quota(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOTS, str(tmp_path))
    np.save(tmp_path / "points.npy", np.zeros((512, 8)))
    signed_in(client, Role.RUNNER)
    monkeypatch.setenv("ISOVIZ_READ_SECONDS", "no")
    status, refused = call(client, "measure", embeddings=str(tmp_path / "points.npy"))
    assert status == 400 and "ISOVIZ_READ_SECONDS" in refused["error"]
    monkeypatch.delenv("ISOVIZ_READ_SECONDS")
    monkeypatch.setenv("ISOVIZ_QUOTA_JOBS", "0")
    status, refused = call(client, "measure", embeddings=str(tmp_path / "points.npy"))
    assert status == 403 and "ISOVIZ_QUOTA_JOBS" in refused["error"]


def test_measuring_ends_when_its_client_is_gone(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ROOTS, str(tmp_path))
    signed_in(client, Role.RUNNER)
    ended = asyncio.Event()

    async def request() -> list[int]:
        loop, begun = asyncio.get_running_loop(), asyncio.Event()

        def measure(*_: Any, pulse: Any, **__: Any) -> None:
            loop.call_soon_threadsafe(begun.set)
            try:
                while True:
                    pulse()
            finally:
                loop.call_soon_threadsafe(ended.set)

        monkeypatch.setattr(guarded, "call", measure)
        body = json.dumps({"embeddings": str(tmp_path / "points.npy")}).encode()
        messages = [{"type": "http.request", "body": body}]

        async def receive() -> Any:
            if messages:
                return messages.pop()
            await begun.wait()
            return {"type": "http.disconnect"}

        statuses: list[int] = []

        async def send(message: Any) -> None:
            statuses.append(message.get("status", 0))

        headers = [(name.lower().encode(), value.encode()) for name, value in client.headers.items()]
        scope = {"type": "http", "method": "POST", "path": "/isoviz/api/measure", "query_string": b""}
        host = (b"host", b"testserver")
        await client.app({**scope, "headers": [host, *headers], "scheme": "http"}, receive, send)  # type: ignore[arg-type]
        await asyncio.wait_for(ended.wait(), 120)
        return statuses

    assert asyncio.run(request())[0] == 499
    assert access._turn.acquire(timeout=120), "the next caller has its turn"
    access._turn.release()


def test_settings_are_converted_or_refused_by_name(
    client: TestClient, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_WRITES, "1")
    monkeypatch.setenv(ROOTS, str(tmp_path))
    signed_in(client, Role.RUNNER)
    launched = call(client, "launch_runs", method=["baseline"], settings={**SMALL, "max_length": "48"})[1]
    assert store.get(launched["ids"][0]).config.max_length == 48
    for name, value in {"seeds": [1], "checks": 1, "processes": 0, "threads": None, "own": {"text": "a"}}.items():
        status, refused = call(client, "launch_runs", method=["baseline"], settings={name: value})
        assert status == 400 and refused["field"].startswith(f"settings.{name}")
    columns = {"text": "review", "label": "stars"}
    status, refused = call(client, "launch_runs", method=["baseline"], settings={"own": columns})
    assert (status, refused["field"]) == (400, "settings.own")
    (tmp_path / "own.csv").write_text("review,stars\n" + "".join(f"text {n},{n % 2}\n" for n in range(40)))
    status, launched = call(
        client,
        "launch_runs",
        method=["baseline"],
        task="own",
        data=str(tmp_path / "own.csv"),
        settings={**SMALL, "own": columns},
    )
    assert status == 200, launched
    own = store.get(launched["ids"][0]).config.own
    assert own is not None and own.kind == "classification"


@pytest.mark.parametrize(
    ("operation", "body", "status", "message"),
    [
        ("nothing", "{}", 404, "No such operation"),
        ("list_runs", "[1]", 400, "must be a JSON object (got [1])"),
        ("list_runs", '{"limt": 3}', 400, "limt: "),
        ("list_runs", "{", 400, "not valid JSON"),
        ("launch_runs", "{}", 403, "read-only"),
        ("measure", "{}", 400, "either a model or a file"),
        ("show_run", '{"id": "gone"}', 404, "no run 'gone'"),
        ("catalogue", '{"kind": "colours"}', 400, "kind: "),
    ],
)
def test_bad_requests_are_one_line(client: TestClient, operation: str, body: str, status: int, message: str) -> None:
    answer = signed_in(client, Role.RUNNER).post(f"/isoviz/api/{operation}", content=body)
    assert answer.status_code == status, answer.text
    text = answer.json()["error"]
    assert message in text and "\n" not in text and "isoviz.db" not in text


def test_every_refusal_is_json(client: TestClient) -> None:
    signed_in(client, Role.RUNNER)
    assert client.get("/isoviz/api/list_runs").headers["allow"] == "POST"
    refusals = (
        client.post("/isoviz/api/list_runs", content=b"{" + b" " * api_routes.LONGEST),
        client.get("/isoviz/api/list_runs"),
        client.put("/isoviz/api"),
        client.post("/isoviz/api/list_runs", headers={"Origin": "https://elsewhere.example"}),
    )
    assert [one.status_code for one in refusals] == [413, 405, 405, 403]
    assert all(set(one.json()) == {"error", "field", "advice"} and one.json()["error"] for one in refusals)


def test_agents_and_programs_have_the_same_operations(store: Store) -> None:
    from isoviz.commands.mcp import server

    tools = {tool.name for tool in server(store, allow_writes=True)._tool_manager.list_tools()}
    assert tools == {operation.name for operation in operations(store, resources.service())}
    assert os.environ.get(API_WRITES) is None
