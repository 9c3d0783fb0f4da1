"""The quota of uploads, checked when a file arrives: what a visitor's open pages hold together."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from dashboard.shared import actions, resources, visitor
from dashboard.streamlit_private import SMALLEST_UPLOAD, forget_uploads, run_again, session_is_open, uploaded_bytes
from isoviz.operations.access.visitors import Visitor

_PATH: Final = re.compile(r".*/_stcore/upload_file/([^/]+)/[^/]+")


class UploadQuota:
    """ASGI middleware that refuses an upload before it is read if it would exceed its visitor's quota.

    What is stored after reading is counted by `isoviz.operations.access.uploads`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self._visitors: dict[str, str] = {}  # of the sessions that hold files
        self._arriving: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = _PATH.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "PUT" else None
        asking = visitor.of_request(scope)
        if address is None or asking is None:
            await self.app(scope, receive, send)
            return
        length = Headers(scope=scope).get("content-length", "")
        if not length.isdecimal():
            await PlainTextResponse("An upload needs a Content-Length.\n", 411)(scope, receive, send)
            return
        size = max(int(length), SMALLEST_UPLOAD)
        reason = self._refusal(asking, size)
        if reason is not None:  # a page that was reloaded has left its files to a closed one
            for session, who in self._visitors.items():
                if who == asking.id and not session_is_open(session):
                    forget_uploads(session)
            reason = self._refusal(asking, size)
        if reason is not None:
            reason = f"{reason}. Close pages that you no longer need."
            if session_is_open(address[1]):  # a session's name is what the request says
                actions.REFUSED_UPLOADS[address[1]] = reason
            await PlainTextResponse(f"{reason}\n", 413)(scope, receive, send)
            run_again(address[1])
            return
        self._arriving[asking.id] += size
        try:
            await self.app(scope, receive, send)
        finally:
            self._arriving[asking.id] -= size
            self._visitors.setdefault(address[1], asking.id)

    def _refusal(self, asking: Visitor, size: int) -> str | None:
        held = uploaded_bytes()
        self._visitors = {session: who for session, who in self._visitors.items() if session in held}
        own = sum(held[session] for session, who in self._visitors.items() if who == asking.id)
        return resources.service_of(asking).upload_refusal(own + self._arriving[asking.id] + size)
