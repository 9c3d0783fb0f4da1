"""The server's access control: allowed hosts and origins, sign-in, and security headers.

One ASGI middleware around pages, static files, uploads, our routes, and Streamlit's WebSocket. No request passes without a
`Visitor`.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import streamlit as st
from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dashboard.server import api_routes, class_routes, routes
from dashboard.shared import visitor
from dashboard.shared.visitor import ByLink, ByLogin, SignIn
from dashboard.streamlit_private import login_redirect
from isoviz.errors import AccessError, InputError
from isoviz.operations.access import links
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.access.visitors import Role, Visitor

COOKIE_SECONDS = 30 * 86400
"""Seconds that a browser keeps a link's cookie: a month, as in Jupyter. The link itself is valid until it is renewed."""

LETTERS = "letters"
"""The query parameter with the code of a class, from the form on the sign-in page."""

HEALTH = ("_stcore/health", "isoviz/health")
"""Paths open to everyone, because monitors have no link."""

_LOOKING = ("GET", "HEAD", "OPTIONS")
_LOGIN = ("auth/login", "auth/logout", "oauth2callback")
_PAGE = re.compile(r"/[^/.]*")
"""Paths of pages; all other paths have a folder or an extension."""


class Authentication:
    """ASGI middleware that admits visitors.

    Args:
        sign_in: how visitors sign in.
        allowed: allowed hosts and origins.
        base_url: Streamlit's base path. Requests from which a proxy has removed it are accepted too.
    """

    def __init__(self, app: ASGIApp, sign_in: SignIn, allowed: AllowedHosts, base_url: str = "") -> None:
        self.app = app
        self.sign_in = sign_in
        self.allowed = allowed
        self.base = f"/{base_url.strip('/')}" if base_url.strip("/") else ""
        self.ambiguous = routes.routes() if self.base == f"/{routes.PREFIX}" else []
        self.headers = headers(allowed.frames)
        self.open_to_all = {f"{self.base}/{path}" for path in HEALTH}
        if isinstance(sign_in, ByLogin):
            self.open_to_all |= {f"{self.base}/{path}" for path in _LOGIN}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan" and self.base:
            scope = self._below_base(scope)
        if scope["type"] == "http":
            await self._answer(scope, receive, self._with_headers(send))
        elif scope["type"] == "websocket":
            await self._connect(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _below_base(self, scope: Scope) -> Scope:
        """The request with the path that the browser asked for, whether or not a proxy has removed the base path from it."""
        path: str = scope["path"]
        # with the base /isoviz, `/isoviz/health` is our route, of which a proxy has removed the base
        without_base = any(route.matches(scope)[0] is not Match.NONE for route in self.ambiguous)
        if f"{path}/".startswith(f"{self.base}/") and not without_base:
            return scope
        raw_path = scope.get("raw_path") or quote(path).encode()
        return {**scope, "path": self.base + path, "raw_path": quote(self.base).encode() + raw_path}

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        answer: Response | None = self._cross_site_refusal(connection)
        path = scope["path"].removeprefix(self.base)
        is_page = scope["method"] in ("GET", "HEAD") and _PAGE.fullmatch(path) is not None
        secret = connection.query_params.get(links.PARAMETER) if is_page else None
        letters = connection.query_params.get(LETTERS) if is_page else None
        asking = self.sign_in.visitor(connection.cookies)
        if asking is None and api_routes.is_api(path) and isinstance(self.sign_in, ByLink):
            kind, _, sent = connection.headers.get("authorization", "").partition(" ")
            asking = self.sign_in.bearer(sent.strip()) if kind.lower() == "bearer" else None
        if answer is not None:
            pass
        elif not path:  # relative addresses in the page need the slash
            query = connection.scope["query_string"].decode("latin-1")
            answer = RedirectResponse(f"./{self.base.rpartition('/')[2]}/" + (f"?{query}" if query else ""), 307)
        elif secret is not None:
            answer = self._by_link(connection, secret)
        elif letters is not None:
            answer = self._by_letters(connection, letters, asking)
        elif asking is None and scope["path"] not in self.open_to_all:
            text = api_routes.NOT_SIGNED_IN if api_routes.is_api(path) else "Open the app by its link first."
            answer = self._sign_in_page(connection) if is_page else _refusal(text, 401)
        elif asking is not None and not self._may_send(asking, scope["method"], path):
            # Streamlit would keep the uploaded bytes in memory
            answer = _refusal("Viewers cannot upload or change anything.")
        if asking is not None:
            visitor.note_request(scope, asking)
        if answer is not None and api_routes.is_api(path):
            answer = api_routes.refusal(answer.status_code, AccessError(bytes(answer.body).decode()))
        await (answer or self.app)(scope, receive, send)

    @staticmethod
    def _may_send(asking: Visitor, method: str, path: str) -> bool:
        """Viewers may read, guess in a class, and call the API, which checks permissions itself."""
        if method in _LOOKING or asking.may(Role.RUNNER):
            return True
        return method == "POST" and (class_routes.may_post(path) or api_routes.is_api(path))

    async def _connect(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        asking = self.sign_in.visitor(connection.cookies)
        if self._cross_site_refusal(connection) is not None or asking is None:
            await send({"type": "websocket.close", "code": 1008})  # before acceptance, so the response is 403
            return
        visitor.note_request(scope, asking)

        async def receive_while_signed_in() -> Message:
            message = await receive()
            # A page stays connected for hours; meanwhile links may be renewed and people removed from the list.
            if message["type"] == "websocket.receive" and self.sign_in.visitor(connection.cookies) != asking:
                await send({"type": "websocket.close", "code": 1008})
                return {"type": "websocket.disconnect", "code": 1008}
            return message

        await self.app(scope, receive_while_signed_in, send)

    def _cross_site_refusal(self, connection: HTTPConnection) -> Response | None:
        """The refusal of a foreign host or origin; None if the request may pass."""
        hosts = connection.headers.getlist("host")
        if len(hosts) != 1 or not self.allowed.allows_host(hosts[0]):
            return _refusal(
                f"IsoViz does not answer to this address: {ascii(', '.join(hosts))[:100]}. "
                "If it is yours, start IsoViz with --allow-host NAME (or ISOVIZ_ALLOWED_HOSTS)."
            )
        origins = connection.headers.getlist("origin")
        if origins:
            if len(origins) == 1 and self.allowed.allows_origin(origins[0], hosts[0]):
                return None
            return _refusal(
                f"IsoViz does not answer to pages of this origin: {ascii(', '.join(origins))[:100]}. "
                "If it is yours, start IsoViz with --allow-origin ORIGIN (or ISOVIZ_ALLOWED_ORIGINS)."
            )
        # Requests for scripts and images have no Origin, but browsers send Sec-Fetch-Site. Links from other sites may be followed.
        site = connection.headers.get("sec-fetch-site", "")
        if site in ("cross-site", "same-site") and connection.headers.get("sec-fetch-mode") != "navigate":
            return _refusal("IsoViz does not serve files to pages of other origins.")
        return None

    def _by_link(self, connection: HTTPConnection, secret: str) -> Response:
        """Sign in by a link: set a cookie and remove the secret from the address."""
        cookie = None
        if isinstance(self.sign_in, ByLink):
            cookie = self.sign_in.admit(secret, connection.cookies)
            if cookie is None:
                return self._sign_in_page(connection)
        return self._entered(connection, _without_secret(connection), cookie)

    def _by_letters(self, connection: HTTPConnection, letters: str, asking: Visitor | None) -> Response:
        """Go on to the class with this code; a visitor who is not signed in becomes a viewer until the class ends."""
        cookie = None
        if asking is None:
            if not isinstance(self.sign_in, ByLink):
                return self._sign_in_page(connection)
            try:
                letters = class_routes.CLASSES.admit(letters)
                cookie = self.sign_in.admit_student(letters)
            except InputError as error:
                return self._sign_in_page(connection, str(error))
        return self._entered(connection, f"./lessons?{urlencode({'class': letters})}", cookie)

    def _entered(self, connection: HTTPConnection, clean: str, cookie: str | None) -> Response:
        """Send the browser to a clean address, with a cookie if it has a new one."""
        site, agent = (connection.headers.get(name, "") for name in ("sec-fetch-site", "user-agent"))
        # browsers send no Sec-Fetch headers over plain HTTP from another machine
        if site == "cross-site" or (not site and "mozilla" in agent.lower()):
            answer: Response = _page(_ENTERING, refresh=clean)
        else:
            answer = RedirectResponse(clean, 303)
        answer.headers["cache-control"] = "no-store"
        if cookie is not None and isinstance(self.sign_in, ByLink):
            answer.set_cookie(
                self.sign_in.cookie,
                cookie,
                max_age=COOKIE_SECONDS,
                path=quote(self.base) or "/",
                secure=self.allowed.is_https(connection.scope["scheme"], connection.headers["host"]),
                httponly=True,
                samesite="strict",
            )
        return answer

    def _sign_in_page(self, connection: HTTPConnection, problem: str = "") -> Response:
        """The page for visitors who are not signed in: it says how to sign in, and what was wrong with a class's code."""
        if isinstance(self.sign_in, ByLogin):
            return self._login(connection, self.sign_in)
        # Browsers withhold the cookie after a link from another site; the page's own link sends it.
        returning = (
            connection.headers.get("sec-fetch-site") == "cross-site" and links.PARAMETER not in connection.query_params
        )
        clean = _without_secret(connection)
        body = (_RETURNING if returning else _NO_LINK).format(
            clean=html.escape(clean),
            base=html.escape(self.base),
            letters=html.escape(connection.query_params.get("class", "")),
            problem=f'<p role="alert">{html.escape(problem)}</p>' if problem else "",
        )
        return _page(body, 401, refresh=clean if returning else None)

    def _login(self, connection: HTTPConnection, sign_in: ByLogin) -> Response:
        claims = sign_in.claims(connection.cookies)
        if claims is not None:
            account = html.escape(str(claims.get("email", "this account")))
            return _page(_NOT_LISTED.format(who=account, base=html.escape(self.base)), 403)
        names = sign_in.providers()
        buttons = "".join(
            f'<p><a class="button" href="{html.escape(login_redirect(name))}">'
            f"Log in{'' if name == 'default' else f' with {html.escape(name)}'}</a></p>"
            for name in names
        )
        return _page(_LOG_IN.format(buttons=buttons), 401)

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                response_headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    response_headers.setdefault(name, value)  # our own pages have a stricter policy
            await send(message)

        return sending


def headers(frames: Sequence[str]) -> dict[str, str]:
    """Security headers of all responses.

    Args:
        frames: further origins whose pages may embed the app in a frame.
    """
    around = " ".join(["'self'", *frames])
    result = {
        "content-security-policy": _policy(around),
        "x-content-type-options": "nosniff",
        # a page's address may briefly contain a link's secret
        "referrer-policy": "no-referrer",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    }
    if not frames:
        result |= {"x-frame-options": "SAMEORIGIN", "cross-origin-opener-policy": "same-origin"}
    return result


def _policy(around: str) -> str:
    """The strictest policy under which Streamlit, its components and plotly.js work (tests/browser/test_authentication.py)."""
    page = (Path(st.__file__).parent / "static" / "index.html").read_text("utf-8")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    inline = " ".join(f"'sha256-{_digest(text)}'" for text in scripts)
    return "; ".join(
        [
            "default-src 'none'",
            # The scripts of our components arrive as text and run from a blob.
            f"script-src 'self' blob: {inline}",
            "worker-src 'self' blob:",
            "style-src 'self' 'unsafe-inline'",
            "font-src 'self' data:",
            "img-src 'self' data: blob:",
            "media-src 'self' data: blob:",
            "connect-src 'self'",
            "manifest-src 'self'",
            "frame-src 'self'",
            "base-uri 'self'",
            "form-action 'self'",
            f"frame-ancestors {around}",
        ]
    )


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _without_secret(connection: HTTPConnection) -> str:
    """The requested address without a link's secret, as a relative URL."""
    pairs = parse_qsl(connection.scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = urlencode([pair for pair in pairs if pair[0] != links.PARAMETER])
    return f"./{connection.scope['path'].rpartition('/')[2]}" + (f"?{query}" if query else "")


def _refusal(text: str, status: int = 403) -> Response:
    return PlainTextResponse(text + "\n", status, {"cache-control": "no-store"})


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:12vh auto;padding:0 1rem}"
    "html{color-scheme:light dark}"
    "input,button{font:inherit;padding:.3em .6em}input{text-transform:uppercase}"
    "code{background:#8882;padding:.1em .3em;border-radius:.3em}"
    ".button{display:inline-block;padding:.4em 1em;border:1px solid;border-radius:.4em;text-decoration:none}"
)
_NO_LINK = """<h1>This IsoViz needs a link</h1>
<form action="{base}/lessons"><label>In a class? Type its code:
<input name="letters" value="{letters}" maxlength="5" size="7" required autocomplete="off" autocapitalize="characters"></label>
<button>Join class</button></form>{problem}
<p>Otherwise open it by its link, which ends in <code>?token=…</code>. IsoViz prints it when it starts.</p>
<ul><li>Your link no longer works? It was replaced. Request the new one.</li>
<li>Did you start IsoViz yourself? <code>python -m isoviz links show</code> prints the links.</li>
<li>Already opened IsoViz in this browser? <a href="{clean}">Try again.</a></li></ul>"""
_RETURNING = '<h1>IsoViz</h1><p><a href="{clean}">Continue to IsoViz</a></p>'
_ENTERING = "<h1>IsoViz</h1><p>Opening IsoViz …</p>"
_LOG_IN = "<h1>Log in to IsoViz</h1>{buttons}"
_NOT_LISTED = """<h1>No access</h1><p>{who} is not on this server's list. Ask the person who runs it to add you.</p>
<p><a class="button" href="{base}/auth/logout">Log out</a></p>"""


def _page(body: str, status: int = 200, *, refresh: str | None = None) -> Response:
    """A page without scripts, shown instead of the app."""
    refresh_tag = "" if refresh is None else f'<meta http-equiv="refresh" content="0; url={html.escape(refresh)}">'
    text = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>IsoViz</title>{refresh_tag}'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>{body}</body></html>'
    )
    policy = f"default-src 'none'; style-src 'sha256-{_digest(_STYLE)}'; base-uri 'none'; frame-ancestors 'self'"
    return HTMLResponse(text, status, {"cache-control": "no-store", "content-security-policy": policy})
