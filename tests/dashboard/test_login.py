"""Login through an OpenID Connect provider, a small one on the loopback: pages, files, WebSocket and routes know the same people."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from joserfc import jwt
from joserfc.jwk import RSAKey
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value

from tests.browser.conftest import Server, start
from tests.dashboard.test_authentication import stream
from tests.story import Story

SECRET = "of the test's cookies, long enough for a signature"
CLIENT = "isoviz"


@dataclass
class Provider:
    """A provider that immediately signs in the user described by `claims`."""

    claims: dict[str, Any] = field(default_factory=dict)
    nonces: dict[str, str] = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    url: str = ""

    def answer(self, path: str, query: dict[str, list[str]]) -> tuple[int, dict[str, str], dict[str, Any]]:
        if path == "/.well-known/openid-configuration":
            names = ("authorization", "token")
            ends = {f"{name}_endpoint": f"{self.url}/{name}" for name in names}
            return 200, {}, {"issuer": self.url, "jwks_uri": f"{self.url}/jwks", **ends}
        if path == "/jwks":
            return 200, {}, {"keys": [self.key.as_dict(private=False)]}
        if path == "/authorization":
            code = f"code{len(self.nonces)}"
            self.nonces[code] = query["nonce"][0]
            back = f"{query['redirect_uri'][0]}?{urlencode({'code': code, 'state': query['state'][0]})}"
            return 302, {"Location": back}, {}
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "sub": "1", "iat": now, "exp": now + 600}
        claims |= {"nonce": self.nonces[query["code"][0]], **self.claims}
        signed = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        return 200, {}, {"access_token": "x", "token_type": "Bearer", "id_token": signed}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    identity_provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            parts = urlsplit(self.path)
            query = parse_qs(self.rfile.read(size).decode() if size else parts.query)
            status, headers, document = identity_provider.answer(parts.path, query)
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(json.dumps(document).encode())

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    identity_provider.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield identity_provider
    server.shutdown()


@pytest.fixture(scope="module")
def shared(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with login; its settings are in the home folder of its account."""
    account = tmp_path_factory.mktemp("account")
    (account / ".streamlit").mkdir()
    (account / ".streamlit" / "secrets.toml").write_text(
        f'[auth]\nredirect_uri = "http://127.0.0.1:{{port}}/oauth2callback"\ncookie_secret = "{SECRET}"\n'
        f'client_id = "{CLIENT}"\nclient_secret = "of the client"\n'
        f'server_metadata_url = "{provider.url}/.well-known/openid-configuration"\n'
    )
    server = start(
        tmp_path_factory.mktemp("home"),
        HOME=str(account),
        ISOVIZ_NO_TOKEN="",
        ISOVIZ_RUNNERS="@uni.example",
        ISOVIZ_OPERATORS="ada@uni.example",
    )
    yield server
    server.end()


def browser(server: Server, cookies: dict[str, str] | None = None) -> httpx.Client:
    return httpx.Client(base_url=server.url, follow_redirects=True, timeout=60, trust_env=False, cookies=cookies)


def log_in(server: Server, provider: Provider, **claims: object) -> tuple[httpx.Client, httpx.Response]:
    """What someone does who has these claims; the client has their cookies then, and the answer is where they end."""
    provider.claims = dict(claims)
    client = browser(server)
    page = client.get("/train")
    assert page.status_code == 401 and "Log in to IsoViz" in page.text
    (address,) = re.findall(r'href="([^"]*auth/login[^"]*)"', page.text)
    return client, client.get(html.unescape(address))


def cookies(client: httpx.Client) -> str:
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)


def test_strangers_see_the_login_and_nothing_behind_it(shared: Server) -> None:
    with browser(shared) as client:
        assert client.get("/static/js/index.js").status_code == 401
        assert client.get("/isoviz/events/x").status_code == 401
        assert client.get("/?token=anything", follow_redirects=False).status_code == 303
        assert client.get("/isoviz/health").status_code == 200
    assert stream(shared) == 403


def test_someone_on_the_list_has_access_everywhere(shared: Server, provider: Provider) -> None:
    client, end = log_in(shared, provider, email="Bob@uni.example", email_verified=True)
    assert end.status_code == 200 and end.url.path == "/" and "streamlit" in end.text.lower()
    assert client.get("/explore").status_code == 200
    assert stream(shared, cookies(client)) == 101
    assert "version" in client.get("/isoviz/health").json()
    run = Story(shared.store).begin()
    assert client.get(f"/isoviz/events/{run.id}").status_code == 200
    client.get("/auth/logout")
    assert client.get("/").status_code == client.get(f"/isoviz/events/{run.id}").status_code == 401


@pytest.mark.parametrize(
    "claims", [{"email": "eve@else.example"}, {"email": "bob@uni.example", "email_verified": False}, {"name": "Bob"}]
)
def test_someone_else_is_refused_with_a_reason(shared: Server, provider: Provider, claims: dict[str, object]) -> None:
    client, end = log_in(shared, provider, **claims)
    assert end.status_code == 403 and "not on this server" in end.text
    assert client.get("/static/js/index.js").status_code == 401
    assert stream(shared, cookies(client)) == 403


def test_a_name_that_looks_like_html_is_text(shared: Server, provider: Provider) -> None:
    _, end = log_in(shared, provider, email="<script>alert(1)</script>@else.example")
    assert end.status_code == 403 and "<script>" not in end.text and "&lt;script&gt;" in end.text


def test_a_forged_login_is_none(shared: Server) -> None:
    claims = {"email": "ada@uni.example", "is_logged_in": True, "origin": shared.url}

    def signed(secret: str, **change: object) -> str:
        return create_signed_value(secret, "_streamlit_user", json.dumps({**claims, **change})).decode()

    assert browser(shared, {"_streamlit_user": signed(SECRET)}).get("/").status_code == 200
    for value in (
        signed("another secret"),
        signed(SECRET, origin="https://another.example"),
        signed(SECRET, is_logged_in=False),
        signed(SECRET, is_logged_in="yes"),
        create_signed_value(SECRET, "_streamlit_user", "[]").decode(),
        create_signed_value(SECRET, "_streamlit_user", "{").decode(),
        create_signed_value(SECRET, "_streamlit_user_tokens", json.dumps(claims)).decode(),
        json.dumps(claims).replace('"', ""),
    ):
        assert browser(shared, {"_streamlit_user": value}).get("/").status_code == 401, value
        assert stream(shared, f"_streamlit_user={value}") == 403
