"""The HTTP API: the MCP operations as routes of the app (docs/agents.md).

A program signs in with the secret of a link, as `Authorization: Bearer SECRET`, or with a browser's cookie, and has the same
permissions as that link's visitors. Launching and stopping runs must also be switched
on (`ISOVIZ_API_WRITES=1`, `isoviz app --api-writes`).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard import reading, resources, visitor
from dashboard.class_routes import read_body
from isoviz.access.reach import API_WRITES, switched_on
from isoviz.access.service import Service
from isoviz.access.visitors import Visitor
from isoviz.commands.operations import Operation, operations
from isoviz.errors import AccessError, IsoVizError, StoreError, input_error
from isoviz.runs.store import StoreUnavailableError

PATH: Final = "isoviz/api"
LONGEST: Final = 100_000
"""Most bytes of a request body."""
COMPUTING: Final = asyncio.Semaphore(1)
"""Held while a process measures for a request, because a model may fill the memory."""
_NOT_SWITCHED_ON: Final = AccessError(
    "This server's API is read-only", advice=f"Start it with --api-writes (or {API_WRITES}=1) to launch and stop runs."
)


def routes(base: str) -> list[BaseRoute]:
    """All routes, below Streamlit's base path."""
    return [
        Route(f"{base}/{PATH}", index, methods=["GET"]),
        Route(f"{base}/{PATH}/{{operation}}", call, methods=["POST"]),
    ]


def is_api(path: str) -> bool:
    """Whether this path (without the base) belongs to the API, which checks roles itself."""
    return path == f"/{PATH}" or path.startswith(f"/{PATH}/")


def index(request: Request) -> Response:
    """All operations of this server, with the JSON schemas of their arguments."""
    _, available = _operations(request)
    return JSONResponse(
        {
            "operations": [
                {
                    "name": operation.name,
                    "description": operation.description,
                    "writes": operation.writes,
                    "arguments": operation.arguments().model_json_schema(),
                }
                for operation in available.values()
                if not operation.writes or switched_on(API_WRITES)
            ]
        }
    )


async def call(request: Request) -> Response:
    """Run one operation; the body is a JSON object with its arguments."""
    try:
        service, found = _operations(request)
        operation = found.get(request.path_params["operation"])
        if operation is None:
            raise HTTPException(404, f"No such operation. Allowed: {', '.join(found)}.")
        if operation.writes and not switched_on(API_WRITES):
            raise _NOT_SWITCHED_ON
        if operation.computes:
            service.require()
        given = operation.arguments().model_validate_json(await read_body(request, LONGEST) or b"{}")
        arguments = {name: getattr(given, name) for name in type(given).model_fields}
        return JSONResponse(await _carried_out(operation, arguments), headers={"Cache-Control": "no-store"})
    except ValidationError as error:
        return _refused(400, input_error(error))
    except AccessError as error:
        return _refused(403, error)
    except StoreUnavailableError as error:
        return _refused(503, error)
    except StoreError as error:
        return _refused(404 if error.field == "id" else 409, error)
    except IsoVizError as error:
        return _refused(400, error)


async def _carried_out(operation: Operation, arguments: dict[str, Any]) -> Any:
    if not asyncio.iscoroutinefunction(operation.call):
        return await run_in_threadpool(operation.call, **arguments)
    async with COMPUTING:
        return await operation.call(**arguments)


def _operations(request: Request) -> tuple[Service, dict[str, Operation]]:
    asking: Visitor | None = visitor.of_request(request.scope)
    if asking is None:
        raise HTTPException(401, "Send the secret of a link as `Authorization: Bearer SECRET`.")
    service = resources.service_of(asking)
    return service, {one.name: one for one in operations(resources.store(), service, reading.CHECKS)}


def _refused(status: int, error: IsoVizError) -> Response:
    # without the store's path, which is private
    message = str(error).partition(" in the store ")[0]
    return JSONResponse({"error": message, "field": error.field, "advice": error.advice}, status)
