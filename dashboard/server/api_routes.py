"""The HTTP API: the MCP operations as routes of the app (docs/agents.md).

A program signs in with the secret of a link, as `Authorization: Bearer SECRET`, or with a browser's cookie, and has the same
permissions as that link's visitors. Launching and stopping runs must also be switched
on (`ISOVIZ_API_WRITES=1`, `isoviz app --api-writes`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final

from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard.server.class_routes import read_body
from dashboard.shared import reading, resources, visitor
from isoviz.errors import AccessError, InputError, IsoVizError, StoreError, shortened
from isoviz.operations.access.allowed_hosts import API_WRITES, switched_on
from isoviz.operations.table import Operation, operations
from isoviz.runs.store import StoreUnavailableError

PATH: Final = "isoviz/api"
LONGEST: Final = 100_000
"""Most bytes of a request body."""
NOT_SIGNED_IN: Final = "Send the secret of a link as `Authorization: Bearer SECRET`."
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_UNCACHED: Final = {"Cache-Control": "no-store"}
_CLIENT_GONE: Final = 499
_NOT_SWITCHED_ON: Final = AccessError(
    "This server's API is read-only", advice=f"Start it with --api-writes (or {API_WRITES}=1) to launch and stop runs."
)


def routes(base: str) -> list[BaseRoute]:
    """All of them, below the path that Streamlit is served from, where other methods would get a page."""
    return [
        Route(f"{base}/{PATH}", answer, methods=_METHODS),
        Route(f"{base}/{PATH}/{{operation}}", answer, methods=_METHODS),
    ]


def is_api(path: str) -> bool:
    """Whether this path (without the base) belongs to the API, which checks roles itself."""
    return path == f"/{PATH}" or path.startswith(f"/{PATH}/")


async def answer(request: Request) -> Response:
    """The index of operations, or what one of them returns. Its arguments are the body, a JSON object."""
    name = request.path_params.get("operation")
    allowed = "GET" if name is None else "POST"
    try:
        if request.method != allowed:
            raise HTTPException(405, f"Send a {allowed} request.", {"Allow": allowed})
        asking = visitor.of_request(request.scope)
        if asking is None:
            raise HTTPException(401, NOT_SIGNED_IN)
        service = resources.service_of(asking)
        offered = operations(resources.store(), service, reading.CHECKS)
        operations_by_name = {one.name: one for one in offered}
        if name is None:
            return JSONResponse(_index(operations_by_name))
        operation = operations_by_name.get(name)
        if operation is None:
            raise HTTPException(404, f"No such operation. Allowed: {', '.join(operations_by_name)}.")
        if operation.writes and not switched_on(API_WRITES):
            raise _NOT_SWITCHED_ON
        if operation.computes:
            service.require()
        arguments = _arguments(await read_body(request, LONGEST))
        return await _while_connected(request, operation.run(arguments))
    except HTTPException as error:
        return refusal(error.status_code, IsoVizError(error.detail), error.headers)
    except IsoVizError as error:
        return refusal(_status(error), error)


def _status(error: IsoVizError) -> int:
    if isinstance(error, AccessError):
        return 403
    if isinstance(error, StoreUnavailableError):
        return 503
    if isinstance(error, StoreError):
        return 404 if error.field == "id" else 409
    return 400


def _index(operations_by_name: dict[str, Operation]) -> dict[str, Any]:
    """Every operation that this server offers, with the JSON schema of its arguments."""
    return {
        "operations": [
            {
                "name": operation.name,
                "description": operation.description,
                "writes": operation.writes,
                "arguments": operation.arguments().model_json_schema(),
            }
            for operation in operations_by_name.values()
            if not operation.writes or switched_on(API_WRITES)
        ]
    }


def _arguments(body: bytes) -> dict[str, Any]:
    try:
        arguments = from_json(body or b"{}", allow_inf_nan=False)
    except ValueError as error:
        raise InputError(f"The body is not valid JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise InputError(f"The body must be a JSON object (got {shortened(arguments)})")
    return arguments


async def _while_connected(request: Request, work: Coroutine[Any, Any, Any]) -> Response:
    """The answer. Where the client goes away, the work is cancelled."""
    working, gone = asyncio.create_task(work), asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return JSONResponse(working.result(), headers=_UNCACHED)
        return Response(status_code=_CLIENT_GONE)
    finally:
        working.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refusal(status: int, error: IsoVizError, headers: Mapping[str, str] | None = None) -> Response:
    """An error as docs/agents.md describes it."""
    # not where the store is: that is for those who can see this machine's files
    message = str(error).partition(" in the store ")[0]
    body = {"error": message, "field": error.field, "advice": error.advice}
    return JSONResponse(body, status, {**_UNCACHED, **(headers or {})})
