"""The routes behind the components: events after a cursor, arrays as bytes, health, and plotly.js.

They are what makes watching cheap: no page reruns for a viewer to see a new point. All are GET, all but `health` and
the scripts ask for a token (see `tokens`), and they read from the store alone. Classes (`class_routes`) and programs
(`api_routes`) have routes of their own. The door (`doorway`) lets only visitors come here, but for `health`, which tells a
stranger no more than that the app serves.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
import math
import re
import time
from collections.abc import Callable, Mapping
from importlib import resources as package_files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

import isoviz
from dashboard import api_routes, class_routes, resources, tokens, view_arrays, visitor
from isoviz.errors import StoreError
from isoviz.events import Measured, parse_event
from isoviz.metrics.record import CloudRecord
from isoviz.runs.store import StoreUnavailableError

if TYPE_CHECKING:
    from isoviz.runs.store import RunRow

PREFIX = "isoviz"
TOKEN_HEADER = "x-isoviz-token"
BATCH = 4000
"""Rows per answer. A client that is told there is `more` asks again at once."""

EV_SHOWN = 50
"""Explained-variance components that travel with an event; the whole curve is an array."""

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FOREVER = "private, max-age=31536000, immutable"


def routes(base_url: str = "") -> list[BaseRoute]:
    """All routes, under the path that Streamlit itself is served from (`server.baseUrlPath`)."""
    base = f"/{base_url.strip('/')}" if base_url.strip("/") else ""
    return [
        Route(f"{base}/{PREFIX}/events/{{run}}", _guarded(events), methods=["GET"]),
        Route(f"{base}/{PREFIX}/arrays/{{run}}/{{epoch:int}}/{{name}}", _guarded(arrays), methods=["GET"]),
        Route(f"{base}/{PREFIX}/{view_arrays.PATH}", view_arrays.arrays, methods=["GET"]),
        Route(f"{base}/{PREFIX}/health", _guarded(health), methods=["GET"]),
        Route(f"{base}/{plotly_path()}", plotly_script, methods=["GET"]),
        Route(f"{base}/{basic_plotly_path()}", basic_plotly_script, methods=["GET"]),
        *class_routes.routes(base),
        *api_routes.routes(base),
    ]


# The endpoints are plain functions on purpose: Starlette runs those in its thread pool, so a slow disk blocks no other request.


def events(request: Request) -> Response:
    """`{status, ..., rows: [[seq, event], ...], more}` for the events of a run after `?after=SEQ`."""
    row = _allowed_run(request)
    after = _cursor(request)
    rows = resources.every_run().events(row.id, after=after, limit=BATCH)
    return JSONResponse(
        {
            "run": row.id,
            "status": row.status,
            "position": row.position,
            "stopping": bool(row.stop_requested) and row.status == "running",
            "started": row.started,
            "ended": row.ended,
            "now": time.time(),
            "rows": [[seq, slim(event)] for seq, event in rows],
            "more": len(rows) == BATCH,
        },
        headers={"Cache-Control": "no-store"},
    )


def arrays(request: Request) -> Response:
    """One array of an epoch's artifact as raw little-endian bytes.

    `matrix` is |ρ| in clustered order, one byte per cell (255 = 1), rows 1 … d−1 of the triangle below the diagonal;
    `order` (int32) says which dimension stands at each place; `std` and `ev` are float32.
    """
    row = _allowed_run(request)
    convert = _ARRAYS.get(request.path_params["name"])
    if convert is None:
        raise HTTPException(404, f"no such array (allowed: {', '.join(_ARRAYS)})")
    path = resources.every_run().folder_of(row.id) / "arrays" / f"epoch-{request.path_params['epoch']:03d}.safetensors"
    if not path.is_file():
        raise HTTPException(404, "this epoch has not been measured")
    try:
        content = convert(path)
    except view_arrays.DAMAGED:
        raise HTTPException(404, "the file of this epoch's arrays is damaged") from None
    # The caller names the version it wants (`?v=seq of the event`), so an answer never goes stale.
    return Response(content, media_type="application/octet-stream", headers={"Cache-Control": _FOREVER})


def health(request: Request) -> Response:
    """Whether the store answers and the runner lives; for monitors, so without a token and without naming runs."""
    runner = resources.runner()
    counts = resources.every_run().counts()
    found: dict[str, Any] = {
        "status": "ok",
        "runner": "off" if runner is None else "alive" if runner.is_alive else "down",
    }
    if visitor.of_request(request.scope) is not None:
        found |= {"version": isoviz.__version__, "running": counts.get("running", 0), "queued": counts.get("queued", 0)}
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


def plotly_script(request: Request) -> Response:
    """plotly.js from the installed package: no foreign host, and compressed once instead of at every visit."""
    return _script(request, _plotly_bytes)


def basic_plotly_script(request: Request) -> Response:
    """The part of plotly.js that draws lines and bars (`dashboard/plotly_basic`), sent in the same way."""
    return _script(request, _basic_plotly_bytes)


def _script(request: Request, read: Callable[[], bytes]) -> Response:
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(_packed(read), media_type="text/javascript", headers={**headers, "Content-Encoding": "gzip"})
    return Response(read(), media_type="text/javascript", headers=headers)


@functools.cache
def plotly_path() -> str:
    """Address of plotly.js below the app's own; it carries the version, so browsers may keep it."""
    from importlib.metadata import version

    return f"{PREFIX}/plotly-{version('plotly')}.min.js"


@functools.cache
def basic_plotly_path() -> str:
    """Address of its basic part; it carries the beginning of the file's hash, so browsers may keep it."""
    return f"{PREFIX}/plotly-basic-{hashlib.sha256(_basic_plotly_bytes()).hexdigest()[:12]}.min.js"


def slim(event: Mapping[str, Any]) -> dict[str, Any]:
    """What the live components need of an event: no per-layer lists, short EV curves, None for anything undefined."""
    kept = {key: value for key, value in event.items() if key not in _DROPPED}
    if event["kind"] == "measured":
        measured = parse_event(event)
        assert isinstance(measured, Measured)
        kept = {key: event[key] for key in ("kind", "time", "step", "epoch", "arrays", "timing") if key in event}
        clouds = measured.isotropy.clouds
        kept["clouds"] = {name: _slim_cloud(clouds[name]) for name in ("head", "layers") if name in clouds}
        if (output := measured.isotropy.output) is not None:
            values = {slug: output.number(slug) for slug in output.readings}
            kept["clouds"]["output"] = {"split": "", "n": output.rows, "d": output.d, **values}
    return {key: _finite(value) for key, value in kept.items()}


def _slim_cloud(cloud: CloudRecord) -> dict[str, Any]:
    values = {slug: cloud.number(slug) for slug in cloud.readings}
    return {"split": cloud.split, "n": cloud.n, "d": cloud.d, **values, "ev": list(cloud.curve("ev")[:EV_SHOWN])}


_DROPPED = frozenset({"isotropy", "versions", "data_fingerprint", "model_fingerprint", "traceback"})


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return value


def _allowed_run(request: Request) -> RunRow:
    """The run named in the path, if the token covers it; without one, the answer does not reveal whether it exists."""
    run = request.path_params["run"]
    store = resources.every_run()
    token = request.headers.get(TOKEN_HEADER, "")
    if not _RUN_ID.fullmatch(run) or not tokens.allows(store.folder, token, run, visitor.of_request(request.scope)):
        raise HTTPException(403, "this page may no longer read the run: reload the page")
    return store.get(run)


def _guarded(endpoint: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """A run that is gone is 404; a store that does not answer is 503, after which the components try again."""

    @functools.wraps(endpoint)
    def answer(request: Request) -> Response:
        try:
            return endpoint(request)
        except StoreUnavailableError:
            raise HTTPException(503, "the store does not answer: try again") from None
        except StoreError:
            raise HTTPException(404, "no such run: it may have been deleted") from None

    return answer


def _cursor(request: Request) -> int:
    given = request.query_params.get("after", "0")
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise HTTPException(400, "after: a sequence number of 0 or more")
    return int(given)


def _matrix_bytes(path: Any) -> bytes:
    import numpy as np

    order = _tensor(path, "order")
    matrix = _tensor(path, "abs_correlation").astype(np.float32)[np.ix_(order, order)]
    lower = matrix[np.tril_indices(len(order), k=-1)]
    return np.rint(255 * np.nan_to_num(lower).clip(0, 1)).astype(np.uint8).tobytes()


def _raw(name: str, dtype: str) -> Any:
    return lambda path: _tensor(path, name).astype(dtype).tobytes()


def _tensor(path: Any, name: str) -> Any:
    from safetensors import safe_open

    with safe_open(path, framework="np") as file:
        return file.get_tensor(name)


_ARRAYS = {
    "matrix": _matrix_bytes,
    "order": _raw("order", "<i4"),
    "std": _raw("std", "<f4"),
    "ev": _raw("ev", "<f4"),
}


@functools.cache
def _plotly_bytes() -> bytes:
    return package_files.files("plotly").joinpath("package_data", "plotly.min.js").read_bytes()


@functools.cache
def _basic_plotly_bytes() -> bytes:
    """The file as published calls itself `Plotly`; that name is the whole's, which may be on the page already."""
    published = (Path(__file__).parent / "plotly_basic" / "plotly-basic.min.js").read_bytes()
    before = b"globalThis.isovizWholePlotly = globalThis.Plotly;\n"
    after = b"\nglobalThis.isovizBasicPlotly = globalThis.Plotly;\nglobalThis.Plotly = globalThis.isovizWholePlotly;\n"
    return before + published + after


@functools.cache
def _packed(read: Callable[[], bytes]) -> bytes:
    return gzip.compress(read(), compresslevel=6, mtime=0)
