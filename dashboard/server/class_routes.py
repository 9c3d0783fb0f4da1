"""Routes of a class: open, join, guess, list the guesses, change the lesson, close. All data is in memory (`isoviz.lessons.classes`).

Opening a class needs the runner role. All visitors, viewers included, may join one: they can only send guesses, which are checked
against the lesson. Reading the guesses needs a key that the opener's browser keeps.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import urlencode, urljoin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard.shared import resources, visitor
from isoviz import lessons
from isoviz.errors import AccessError, InputError
from isoviz.lessons.classes import Classes, NoClassError
from isoviz.operations.access import links

PATH = "isoviz/classes"
KEY_HEADER = "x-isoviz-class"
LONGEST = 1000
"""Most bytes of a request body."""

CLASSES = Classes()

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Showing(BaseModel):
    """The teacher's request: the lesson that the students follow."""

    model_config = _STRICT
    lesson: str


class Opening(Showing):
    """The teacher's request to open a class; with the app's address, the answer has a QR code of the link."""

    address: Annotated[str, Field(pattern=r"^https?://", max_length=300)] | None = None


class Joining(BaseModel):
    """A student's request: the browser's random name."""

    model_config = _STRICT
    student: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Guessing(Joining):
    """A student's request with a guess."""

    lesson: str
    step: int
    guess: float


def routes(base: str) -> list[BaseRoute]:
    """All routes, below Streamlit's base path."""
    class_path = f"{base}/{PATH}/{{code}}"
    return [
        Route(f"{base}/{PATH}", _answered(_open), methods=["POST"]),
        Route(class_path, _answered(_receive_guess), methods=["POST"]),
        Route(class_path, _answered(_guesses), methods=["GET"]),
        Route(class_path, _answered(_show), methods=["PUT"]),
        Route(class_path, _answered(_close), methods=["DELETE"]),
    ]


def is_open(code: str) -> bool:
    """Whether an open class has this code."""
    return CLASSES.is_open(code)


def may_post(path: str) -> bool:
    """Whether viewers may post to this path (without the base): only to join and guess."""
    return path.startswith(f"/{PATH}/")


async def _open(request: Request) -> Response:
    wanted = Opening.model_validate_json(await read_body(request))
    opened = await run_in_threadpool(_opened, request, wanted)
    return JSONResponse(opened, 201)


def _opened(request: Request, wanted: Opening) -> dict[str, Any]:
    asking = visitor.of_request(request.scope)
    if asking is None:
        raise HTTPException(403, "Open the app by its link first.")
    resources.service_of(asking).require()
    opened_class = CLASSES.open(lessons.on_this_server()[0], wanted.lesson)
    query = {"class": opened_class.code}
    if (secret := visitor.viewers_secret()) is not None:  # so that students need only the link
        query[links.PARAMETER] = secret
    link = f"lessons?{urlencode(query)}"
    qr = None if wanted.address is None else qr_code(urljoin(wanted.address, link))
    return {"code": opened_class.code, "key": opened_class.key, "link": link, "qr": qr}


def qr_code(text: str) -> str:
    """A QR code as the data URI of an SVG, black on white in both themes."""
    import segno

    return str(segno.make(text, error="m", micro=False).svg_data_uri(light="#fff"))


async def _receive_guess(request: Request) -> Response:
    code, body = request.path_params["code"], await read_body(request)
    if b'"guess"' not in body:
        return JSONResponse({"lesson": CLASSES.join(code, Joining.model_validate_json(body).student)})
    sent = Guessing.model_validate_json(body)
    CLASSES.guess(code, sent.student, sent.lesson, sent.step, sent.guess)
    return JSONResponse({})


async def _guesses(request: Request) -> Response:
    students, guesses = CLASSES.guesses(request.path_params["code"], request.headers.get(KEY_HEADER, ""))
    return JSONResponse({"students": students, "guesses": guesses})


async def _show(request: Request) -> Response:
    wanted = Showing.model_validate_json(await read_body(request))
    CLASSES.show(request.path_params["code"], request.headers.get(KEY_HEADER, ""), wanted.lesson)
    return JSONResponse({})


async def _close(request: Request) -> Response:
    CLASSES.close(request.path_params["code"], request.headers.get(KEY_HEADER, ""))
    return JSONResponse({})


async def read_body(request: Request, longest: int = LONGEST) -> bytes:
    """The request body. Raises as soon as it exceeds `longest` bytes."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > longest:
            raise HTTPException(413, f"The request is longer than {longest:,} bytes.")
    return body


def _answered(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Turn errors in a request into one-line responses."""

    @functools.wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            result = await endpoint(request)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise HTTPException(400, f"{place or 'body'}: {first['msg'][:200]}") from None
        except (NoClassError, AccessError, InputError) as error:
            status = 404 if isinstance(error, NoClassError) else 403 if isinstance(error, AccessError) else 400
            raise HTTPException(status, str(error)) from None
        result.headers["cache-control"] = "no-store"
        return result

    return answer
