"""The scripts in the head of each page's HTML, and in no other answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from dashboard.server import routes
from dashboard.server.page_head import FIGURE_PAGES, PAGES, SERVER_ADDRESS, PageHead

HTML = "<!DOCTYPE html><html><head><title>é</title></head><body>" + "text " * 500 + "</body></html>"
TAG = f'src="./{routes.basic_plotly_path()}"'


def page(_: Request) -> Response:
    return HTMLResponse(HTML, headers={"etag": '"of what was"', "cache-control": "no-cache"})


def in_pieces(_: Request) -> Response:
    def pieces() -> Iterator[bytes]:
        for at in range(0, len(HTML), 17):
            yield HTML[at : at + 17].encode()

    return StreamingResponse(pieces(), media_type="text/html")


def client(base: str = "", **endpoints: object) -> TestClient:
    """The middleware as `st.App` puts it: around what compresses answers."""
    named = dict.fromkeys((*PAGES, "other"), page) | endpoints
    app_routes = [Route(f"{base}/{name}", endpoint, methods=["GET", "POST"]) for name, endpoint in named.items()]  # type: ignore[arg-type]
    middleware = [Middleware(PageHead, base_url=base), Middleware(GZipMiddleware, minimum_size=100)]
    return TestClient(Starlette(routes=app_routes, middleware=middleware))


@pytest.mark.parametrize("name", FIGURE_PAGES)
@pytest.mark.parametrize("base", ["", "/lab"])
def test_page_with_figures_asks_for_the_script(name: str, base: str) -> None:
    answer = client(base).get(f"{base}/{name}?explore_layer=1", headers={"accept-encoding": "gzip"})
    assert answer.status_code == 200 and answer.text.count(TAG) == 1
    assert answer.text.replace(answer.text.split("</title>")[1].split("</head>")[0], "", 1) == HTML
    assert int(answer.headers["content-length"]) == len(answer.content)
    assert "etag" not in answer.headers and answer.headers["cache-control"] == "no-cache"


def test_address_matches_the_route_below_the_same_path() -> None:
    served = TestClient(Starlette(routes=routes.routes("lab")))
    address = client("/lab").get("/lab/explore").text.split('src=".')[1].split('"')[0]
    assert served.get(f"/lab{address}").headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize("base", ["", "/lab"])
def test_every_page_names_the_server(base: str) -> None:
    for name in PAGES:
        assert client(base).get(f"{base}/{name}").text.count(f"<script>{SERVER_ADDRESS}</script></head>") == (
            name not in FIGURE_PAGES
        )
    assert {"", "train", "live", "papers"} <= set(PAGES)
    assert TAG not in client(base).get(f"{base}/train").text


def test_other_answers_pass_as_they_are() -> None:
    plain = client().get("/other", headers={"accept-encoding": "gzip"})
    assert plain.text == HTML and plain.headers["content-encoding"] == "gzip" and plain.headers["etag"]
    assert TAG not in client().post("/explore").text
    data = client(explore=lambda _: JSONResponse({"html": "</head>"})).get("/explore")
    assert data.json() == {"html": "</head>"}
    gone = client(explore=lambda _: HTMLResponse(HTML, 404)).get("/explore")
    assert (gone.status_code, gone.text) == (404, HTML)


def test_a_reply_in_pieces_is_complete() -> None:
    answer = client(explore=in_pieces).get("/explore")
    assert answer.text.count(TAG) == 1 and answer.text.endswith("</body></html>")
