"""The routes behind the components: events after a cursor, arrays, health, and plotly.js.

They make live views cheap: new points need no page rerun. All routes are GET and only read the store. Classes (`class_routes`) and
programs (`api_routes`) have separate routes. `authentication` admits only visitors, who may see every run, except to `health`, which tells
others no more than that the app is running.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import time
from collections.abc import Callable, Mapping
from importlib import resources as package_files
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import isoviz
from dashboard.server import api_routes, arrays, class_routes
from dashboard.shared import resources, visitor
from isoviz.errors import StoreError
from isoviz.events import Measured, parse_event
from isoviz.runs.store import StoreUnavailableError

PREFIX = "isoviz"
BATCH = 4000
"""Rows per response. If there is `more`, the client requests again immediately."""

EV_SHOWN = 50
"""Explained-variance components in an event; the complete curve is an array."""


def routes(base_url: str = "") -> list[BaseRoute]:
    """All routes, under the path that Streamlit itself is served from (`server.baseUrlPath`)."""
    base = f"/{base_url.strip('/')}" if base_url.strip("/") else ""
    return [
        Route(f"{base}/{PREFIX}/events/{{run}}", _guarded(events), methods=["GET"]),
        Route(f"{base}/{PREFIX}/arrays/{{run}}/{{epoch:int}}/{{name}}", _guarded(arrays.of_run), methods=["GET"]),
        Route(f"{base}/{PREFIX}/views/{{key}}/{{layer:int}}/{{pooling}}/{{name}}", arrays.of_view, methods=["GET"]),
        Route(f"{base}/{PREFIX}/health", _guarded(health), methods=["GET"]),
        Route(f"{base}/{plotly_path()}", plotly_script, methods=["GET"]),
        Route(f"{base}/{basic_plotly_path()}", basic_plotly_script, methods=["GET"]),
        *class_routes.routes(base),
        *api_routes.routes(base),
    ]


# The endpoints are deliberately not async: Starlette runs them in its thread pool, so a slow disk blocks no other request.


def events(request: Request) -> Response:
    """`{status, ..., rows: [[seq, event], ...], more}` for the events of a run after `?after=SEQ`."""
    row = arrays.run_of(request)
    after = _cursor(request)
    rows = resources.library().events(row.id, after=after, limit=BATCH)
    document = {
        "run": row.id,
        "status": row.status,
        "position": row.position,
        "stopping": bool(row.stop_requested) and row.status == "running",
        "started": row.started,
        "ended": row.ended,
        "now": time.time(),
        "rows": [[seq, slim(event)] for seq, event in rows],
        "more": len(rows) == BATCH,
    }
    return _json(document)


def _json(document: Mapping[str, Any]) -> Response:
    content = to_json(document, inf_nan_mode="null")
    return Response(content, media_type="application/json", headers={"Cache-Control": "no-store"})


def health(request: Request) -> Response:
    """Whether the store responds and the runner is alive; for monitors, so without signing in and without run names."""
    runner = resources.runner()
    counts = resources.library().counts()
    state = "off" if runner is None else "alive" if runner.is_alive else "down"
    status: dict[str, Any] = {"status": "ok", "runner": state}
    if visitor.of_request(request.scope) is not None:
        status |= {"version": isoviz.__version__} | {name: counts.get(name, 0) for name in ("running", "queued")}
    return JSONResponse(status, headers={"Cache-Control": "no-store"})


def plotly_script(request: Request) -> Response:
    """plotly.js from the installed package, compressed once."""
    return _script(request, _plotly_bytes)


def basic_plotly_script(request: Request) -> Response:
    """The basic bundle of plotly.js (`dashboard/plotly_basic`), compressed once."""
    return _script(request, _basic_plotly_bytes)


def _script(request: Request, read: Callable[[], bytes]) -> Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(_packed(read), media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(read(), media_type="text/javascript", headers=headers)


@functools.cache
def plotly_path() -> str:
    """Path of plotly.js; it contains the version, so browsers can cache it."""
    from importlib.metadata import version

    return f"{PREFIX}/plotly-{version('plotly')}.min.js"


@functools.cache
def basic_plotly_path() -> str:
    """Path of the basic bundle; it contains the file's hash, so browsers can cache it."""
    return f"{PREFIX}/plotly-basic-{hashlib.sha256(_basic_plotly_bytes()).hexdigest()[:12]}.min.js"


def slim(event: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an event for the live components: no per-layer lists, and short EV curves."""
    slimmed = {key: value for key, value in event.items() if key not in _DROPPED}
    if event["kind"] == "measured":
        measured = parse_event(event)
        assert isinstance(measured, Measured)
        slimmed = {key: event[key] for key in ("kind", "time", "step", "epoch", "arrays", "timing") if key in event}
        clouds = measured.isotropy.clouds
        slimmed["clouds"] = {
            name: {"split": cloud.split, "n": cloud.n, "d": cloud.d}
            | {slug: cloud.number(slug) for slug in cloud.readings}
            | {"ev": list(cloud.curve("ev")[:EV_SHOWN])}
            for name in ("head", "layers")
            if (cloud := clouds.get(name)) is not None
        }
        if (output := measured.isotropy.output) is not None:
            values = {slug: output.number(slug) for slug in output.readings}
            slimmed["clouds"]["output"] = {"split": "", "n": output.rows, "d": output.d, **values}
    return slimmed


_DROPPED = frozenset({"isotropy", "versions", "data_fingerprint", "model_fingerprint", "traceback"})


def _guarded(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Respond with 404 for a deleted run, and with 503 if the store does not respond, so that the components retry."""

    @functools.wraps(endpoint)
    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except StoreUnavailableError:
            raise HTTPException(503, "the store does not respond: try again") from None
        except StoreError:
            raise HTTPException(404, "no such run: it may have been deleted") from None

    return answer


def _cursor(request: Request) -> int:
    text = request.query_params.get("after", "0")
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise HTTPException(400, "after: a sequence number of 0 or more")
    return int(text)


@functools.cache
def _plotly_bytes() -> bytes:
    return package_files.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()


@functools.cache
def _basic_plotly_bytes() -> bytes:
    """The basic bundle under another global name, because the full bundle on the page may already use `Plotly`."""
    published = (Path(__file__).parents[1] / "plotly_basic" / "plotly-basic.min.js").read_bytes()
    before = b"globalThis.isovizWholePlotly = globalThis.Plotly;\n"
    after = b"\nglobalThis.isovizBasicPlotly = globalThis.Plotly;\nglobalThis.Plotly = globalThis.isovizWholePlotly;\n"
    return before + published + after


@functools.cache
def _packed(read: Callable[[], bytes]) -> bytes:
    return gzip.compress(read(), compresslevel=6, mtime=0)
