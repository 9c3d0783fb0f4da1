"""The door of a real server, met as an attacker does: foreign names and pages, no cookie, a forged one, a changed link."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from dashboard.server import routes
from dashboard.server.authentication import Authentication
from dashboard.shared.visitor import ByLink, Open
from isoviz.__main__ import main
from isoviz.operations.access import links
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.access.visitors import Role
from tests.browser.conftest import Server, start
from tests.ports import free_port
from tests.story import Story

ROOT = Path(__file__).resolve().parents[2]
Answer = tuple[int, dict[str, str], bytes]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start(tmp_path_factory.mktemp("home"), ISOVIZ_NO_TOKEN="")
    yield server
    server.end()


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A public demo that a course page shows in a frame, behind a proxy."""
    server = start(
        tmp_path_factory.mktemp("home"),
        ISOVIZ_NO_TOKEN="",
        ISOVIZ_READ_ONLY="1",
        ISOVIZ_URL="https://isoviz.example.org",
        ISOVIZ_FRAMED_BY="https://course.example.org",
    )
    yield server
    server.end()


def ask(server: Server, path: str, method: str = "GET", **headers: str | None) -> Answer:
    """One request, with `host`, `origin`, `cookie`, … as they are given; `host=None` leaves it out."""
    port = urlsplit(server.url).port or 0
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    host = named.pop("host", f"127.0.0.1:{port}")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    for name, value in {"host": host, **named}.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    reply = answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    connection.close()
    return reply


def secret(server: Server, role: Role) -> str:
    return links.read(server.store.folder).secrets[role]


def cookie(server: Server, role: Role) -> str:
    status, headers, _ = ask(server, f"/?token={secret(server, role)}")
    assert status == 303
    return headers["set-cookie"].partition(";")[0]


def stream(server: Server, cookie: str | None = None, origin: str | None = "", host: str | None = None) -> int:
    """The status of a WebSocket's handshake; 101 opens it."""
    port = urlsplit(server.url).port or 0
    lines = [
        "GET /_stcore/stream HTTP/1.1",
        f"Host: {host or f'127.0.0.1:{port}'}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Protocol: streamlit",
    ]
    if origin is not None:
        lines.append(f"Origin: {origin or server.url}")
    if cookie:
        lines.append(f"Cookie: {cookie}")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        return int(raw.recv(4096).split()[1])


PATHS = ("/", "/train", "/static/js/index.js", "/_stcore/health", "/_stcore/host-config", "/isoviz/health")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", None])
def test_a_foreign_name_is_refused_everywhere(guarded: Server, host: str | None) -> None:
    """DNS rebinding: the attacker's page and this server have one name, so the browser sees one origin."""
    inside = cookie(guarded, Role.OPERATOR)
    for path in PATHS:
        assert ask(guarded, path, host=host, cookie=inside)[0] in (400, 403), path
    assert ask(guarded, f"/?token={secret(guarded, Role.OPERATOR)}", host=host)[0] in (400, 403)
    if host is not None:
        assert stream(guarded, inside, origin=f"http://{host}", host=host) == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:9999", "null", "http://localhost:{port}"])
def test_a_foreign_page_is_refused_everywhere(guarded: Server, origin: str) -> None:
    inside = cookie(guarded, Role.OPERATOR)
    origin = origin.format(port=urlsplit(guarded.url).port)
    run = Story(guarded.store).begin()
    for path in (*PATHS, f"/isoviz/events/{run.id}"):
        status, headers, _ = ask(guarded, path, origin=origin, cookie=inside)
        assert (status, headers.get("access-control-allow-origin")) == (403, None), path
    assert ask(guarded, "/", method="POST", origin=origin, cookie=inside)[0] == 403
    assert stream(guarded, inside, origin=origin) == 403
    assert stream(guarded, inside) == 101  # its own page


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_files_are_not_for_pages_of_other_origins(guarded: Server, site: str) -> None:
    """Browsers request pictures and scripts without an Origin; another port of this machine is the same site."""
    inside = cookie(guarded, Role.VIEWER)
    for mode in ("no-cors", "cors", "websocket"):
        assert (
            ask(guarded, f"/{routes.plotly_path()}", cookie=inside, sec_fetch_site=site, sec_fetch_mode=mode)[0] == 403
        )
    assert ask(guarded, "/train", cookie=inside, sec_fetch_site=site, sec_fetch_mode="navigate")[0] == 200


def test_without_a_cookie_nothing_is_behind_the_door(guarded: Server) -> None:
    run = Story(guarded.store).begin()
    status, headers, body = ask(guarded, "/train?train_data.own=/etc/passwd")
    assert status == 401 and b"needs a link" in body and b"streamlit" not in body.lower()
    assert "default-src 'none'" in headers["content-security-policy"] and headers["cache-control"] == "no-store"
    for path in (
        "/static/js/index.js",
        "/index.html",
        "/_stcore/host-config",
        "/_stcore/agent/openapi.json",
        "/_stcore/upload_file/a/b",
        "/media/x.csv",
        "/app/static/logo.svg",
        f"/{routes.plotly_path()}",
        f"/isoviz/events/{run.id}",
        f"/isoviz/arrays/{run.id}/0/matrix",
        "//train",
        "//_stcore/health",
        "/_stcore/health/../../train",
        "/_stcore/health%2f..%2f..%2ftrain",
        "/oauth2callback",
        "/./train",
        "/train/",
    ):
        assert ask(guarded, path)[0] in (400, 401), path
    assert ask(guarded, "/_stcore/upload_file/a/b", method="PUT")[0] == 401
    assert ask(guarded, "/_stcore/agent/interact", method="POST")[0] == 401
    assert stream(guarded) == stream(guarded, origin=None) == 403
    assert json.loads(ask(guarded, "/isoviz/health")[2]) == {"status": "ok", "runner": "off"}


def test_a_viewer_leaves_no_bytes_with_the_server(guarded: Server, public: Server) -> None:
    """Streamlit keeps uploads of every session in memory."""
    path = "/_stcore/upload_file/a/b"
    for method in ("PUT", "POST", "DELETE", "PATCH"):
        status, _, body = ask(guarded, path, method=method, cookie=cookie(guarded, Role.VIEWER))
        assert status == 403 and b"Viewers cannot upload" in body, method
        assert ask(public, path, method=method, host="isoviz.example.org")[0] == 403, method
    status, _, body = ask(guarded, path, method="PUT", cookie=cookie(guarded, Role.RUNNER))
    assert status == 411 and b"Viewers" not in body, "it is a runner, whose upload needs a length"


def test_a_changed_link_ends_its_cookies_and_open_pages(guarded: Server) -> None:
    runner, viewer = cookie(guarded, Role.RUNNER), cookie(guarded, Role.VIEWER)
    old = secret(guarded, Role.RUNNER)
    url = f"{guarded.url.replace('http', 'ws')}/_stcore/stream"
    with connect(url, origin=guarded.url, subprotocols=["streamlit"], additional_headers={"Cookie": runner}) as page:  # type: ignore[arg-type, list-item]
        renewed = subprocess.run(
            [
                sys.executable,
                "-m",
                "isoviz",
                "links",
                "renew",
                "runner",
                "--store",
                str(guarded.store.folder),
                "--json",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert renewed.returncode == 0, renewed.stderr
        page.send(b"\x12\x00")  # anything that a widget would send
        with pytest.raises(ConnectionClosed):
            while True:
                page.recv(timeout=60)
    assert ask(guarded, "/", cookie=runner)[0] == 401
    assert ask(guarded, f"/?token={old}")[0] == 401
    assert stream(guarded, runner) == 403
    with pytest.raises(InvalidStatus):
        connect(url, origin=guarded.url, subprotocols=["streamlit"], additional_headers={"Cookie": runner})  # type: ignore[arg-type, list-item]
    assert ask(guarded, "/", cookie=viewer)[0] == 200
    renewed_links = json.loads(renewed.stdout)["links"]
    assert renewed_links["runner"].endswith(secret(guarded, Role.RUNNER)) and old not in renewed.stdout


def test_a_link_keeps_the_rest_of_the_address(guarded: Server) -> None:
    token = secret(guarded, Role.VIEWER)
    status, headers, body = ask(guarded, f"/run?id=a%26b&token={token}&x=")
    assert (status, headers["location"], body) == (303, "./run?id=a%26b&x=", b"")
    attributes = {part.strip().lower() for part in headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes and "secure" not in attributes
    assert headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-store"
    # a proxy on this machine says that the browser speaks TLS with it
    assert "Secure" in ask(guarded, f"/?token={token}", x_forwarded_proto="https")[1]["set-cookie"]
    # from another site, and where a browser does not say from where, the page's own step brings the cookie
    for more in ({"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate"}, {"user_agent": "Mozilla/5.0"}):
        status, headers, body = ask(guarded, f"/run?id=1&token={token}", **more)
        assert status == 200 and b'url=./run?id=1"' in body and "set-cookie" in headers
    # no link leads elsewhere
    assert ask(guarded, f"//evil.example?token={token}")[0] == 401


def test_every_response_has_security_headers(guarded: Server) -> None:
    inside = cookie(guarded, Role.VIEWER)
    for path, status in (
        ("/", 200),
        ("/explore", 200),
        ("/isoviz/health", 200),
        (f"/isoviz/views/{'0' * 32}/1/cls/none", 404),
        ("/isoviz/events/x", 404),
    ):
        code, headers, _ = ask(guarded, path, cookie=inside)
        assert code == status, path
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy and "'unsafe-eval'" not in policy
        assert "'unsafe-inline'" not in policy.partition("style-src")[0]
        assert (headers["x-frame-options"], headers["x-content-type-options"]) == ("SAMEORIGIN", "nosniff")
        assert headers["referrer-policy"] == "no-referrer"


def test_a_public_demo_lets_everyone_view(public: Server) -> None:
    assert ask(public, "/")[0] == 200 and stream(public) == 101
    assert ask(public, "/", host="isoviz.example.org")[0] == 200
    assert ask(public, "/", host="evil.example")[0] == 403
    assert stream(public, origin="https://isoviz.example.org") == 101  # by a proxy that does not pass on the Host
    assert stream(public, origin="https://evil.example") == 403
    _, headers, _ = ask(public, "/")
    assert "frame-ancestors 'self' https://course.example.org" in headers["content-security-policy"]
    assert "x-frame-options" not in headers
    status, headers, _ = ask(public, f"/?token={secret(public, Role.RUNNER)}")
    assert (status, headers.get("set-cookie")) == (303, None)  # a link gives no one more


def test_below_a_base_path(tmp_path: Path) -> None:
    sign_in = ByLink(lambda: tmp_path, "visitor")

    async def everything(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse(f"behind the door: {scope['path']} {scope['raw_path'].decode()}")(scope, receive, send)

    door = Authentication(everything, sign_in, AllowedHosts("127.0.0.1"), "/lab/")
    client = TestClient(door, base_url="http://127.0.0.1:8501", follow_redirects=False)
    assert client.get("/lab/isoviz/health").status_code == client.get("/lab/_stcore/health").status_code == 200
    for path in ("/lab/", "/lab/train", "/labour", "/train", "/lab/static/x.js"):
        assert client.get(path).status_code == 401, path
    assert client.get("/lab?a=1").headers["location"] == "./lab/?a=1"
    answer = client.get(f"/lab/train?token={sign_in.links().secrets[Role.VIEWER]}")
    assert (answer.status_code, answer.headers["location"]) == (303, "./train")
    assert "Path=/lab;" in answer.headers["set-cookie"]
    assert client.get("/lab/train").text == "behind the door: /lab/train /lab/train"
    assert client.get("/isoviz/health").status_code == 200  # a proxy has removed the base
    cookie = {"cookie": answer.headers["set-cookie"].partition(";")[0]}
    assert client.get("/a%20b", headers=cookie).text == "behind the door: /lab/a b /lab/a%20b"


@pytest.mark.parametrize("path", ["", "/", "/isoviz/health", "/explore", "/isoviz/api/measure"])
def test_a_base_path_with_the_name_of_the_routes(path: str) -> None:
    paths: list[str] = []

    async def noting(scope: Scope, receive: Receive, send: Send) -> None:
        paths.append(scope["path"])
        await PlainTextResponse("")(scope, receive, send)

    client = TestClient(
        Authentication(noting, Open.UNGUARDED, AllowedHosts("127.0.0.1"), "isoviz"), base_url="http://127.0.0.1"
    )
    for prefix in ("", "/isoviz"):  # removed by a proxy, or passed on
        client.get(f"{prefix}{path}")
    assert paths == [f"/isoviz{path or '/'}"] * 2


@pytest.mark.parametrize(("host", "how"), [("0.0.0.0", "option"), ("::", "variable")])
def test_a_server_for_others_does_not_start_unguarded(
    host: str, how: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if how == "variable":
        monkeypatch.setenv("ISOVIZ_NO_TOKEN", "1")
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("it started"))
    words = ["--no-token"] if how == "option" else []
    assert main(["app", "--headless", "--port", str(free_port()), "--host", host, *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("isoviz: --host: with --no-token")


@pytest.mark.parametrize(
    "options",
    [("--url", "example.org"), ("--allow-host", "*")],
)
def test_a_bad_address_is_named(
    options: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("it started"))
    assert main(["app", "--headless", "--port", str(free_port()), *options]) == 2
    assert capsys.readouterr().err.startswith(f"isoviz: {options[0]}: expected")


def test_streamlit_alone_does_not_start_it_unguarded_either(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streamlit", "run", "dashboard/server/main.py", "--server.address", "0.0.0.0"]
    environment = {**os.environ, "ISOVIZ_NO_TOKEN": "1", "ISOVIZ_HOME": str(tmp_path)}
    refused = subprocess.run(
        [*command, f"--server.port={free_port()}"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert refused.returncode == 2 and "anyone who reaches 0.0.0.0" in refused.stderr
