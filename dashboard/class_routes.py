"""The routes of a class: open it, join it and guess, see the guesses, close it. Everything is in memory (`isoviz.lessons.classes`).

Only those who may start something here open a class. Every visitor may join one, viewers too: what they can write is a guess,
checked against the lesson. The guesses come with the key that the opener's browser keeps.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from dashboard import resources, visitor
from isoviz import lessons
from isoviz.access import links
from isoviz.errors import AccessError, InputError
from isoviz.lessons.classes import Classes, NoClassError

PATH = "isoviz/classes"
KEY_HEADER = "x-isoviz-class"
LONGEST = 1000
"""Bytes of a body."""

CLASSES = Classes()

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class Opening(BaseModel):
    """What the teacher's browser sends: the lesson to start with."""

    model_config = _STRICT
    lesson: str


class Joining(BaseModel):
    """What a student's browser sends: its random name."""

    model_config = _STRICT
    student: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]


class Guessing(Joining):
    """The same with a guess."""

    lesson: str
    step: int
    guess: float


def routes(base: str) -> list[BaseRoute]:
    """All of them, below the path that Streamlit is served from."""
    one = f"{base}/{PATH}/{{code}}"
    return [
        Route(f"{base}/{PATH}", _answered(_open), methods=["POST"]),
        Route(one, _answered(_take), methods=["POST"]),
        Route(one, _answered(_guesses), methods=["GET"]),
        Route(one, _answered(_close), methods=["DELETE"]),
    ]


def may_post(path: str) -> bool:
    """Whether viewers may post to this path (without the base): only guesses."""
    return path.startswith(f"/{PATH}/")


async def _open(request: Request) -> Response:
    wanted = Opening.model_validate_json(await read_body(request))
    opened = await run_in_threadpool(_opened, request, wanted.lesson)
    return JSONResponse(opened, 201)


def _opened(request: Request, first: str) -> dict[str, Any]:
    asking = visitor.of_request(request.scope)
    if asking is None:
        raise HTTPException(403, "Open the app by its link first.")
    resources.service_of(asking).require()
    found = CLASSES.open(lessons.on_this_server()[0], first)
    query = {"class": found.code}
    if (secret := visitor.viewers_secret()) is not None:  # so that the link alone lets students in
        query[links.PARAMETER] = secret
    return {"code": found.code, "key": found.key, "link": f"lessons?{urlencode(query)}"}


async def _take(request: Request) -> Response:
    code, body = request.path_params["code"], await read_body(request)
    if b'"guess"' not in body:
        return JSONResponse({"lesson": CLASSES.join(code, Joining.model_validate_json(body).student)})
    sent = Guessing.model_validate_json(body)
    CLASSES.guess(code, sent.student, sent.lesson, sent.step, sent.guess)
    return JSONResponse({})


async def _guesses(request: Request) -> Response:
    students, guesses = CLASSES.guesses(request.path_params["code"], request.headers.get(KEY_HEADER, ""))
    return JSONResponse({"students": students, "guesses": guesses})


async def _close(request: Request) -> Response:
    CLASSES.close(request.path_params["code"], request.headers.get(KEY_HEADER, ""))
    return JSONResponse({})


async def read_body(request: Request, longest: int = LONGEST) -> bytes:
    """The body; refused before it is read whole if it is longer than so many bytes."""
    found = b""
    async for piece in request.stream():
        found += piece
        if len(found) > longest:
            raise HTTPException(413, f"The request is longer than {longest:,} bytes.")
    return found


def _answered(endpoint: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """What is wrong with a request, as one line."""

    @functools.wraps(endpoint)
    async def answer(request: Request) -> Response:
        try:
            found = await endpoint(request)
        except NoClassError as error:
            raise HTTPException(404, str(error)) from None
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise HTTPException(400, f"{place or 'body'}: {first['msg'][:200]}") from None
        except AccessError as error:
            raise HTTPException(403, str(error)) from None
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        found.headers["cache-control"] = "no-store"
        return found

    return answer
