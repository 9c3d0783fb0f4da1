"""The visitor of a page or request, from the cookie that a link or a login set in the browser.

Pages call `current()`; `authentication` and the routes use the same `SignIn`, so a visitor is the same person everywhere.
"""

from __future__ import annotations

import enum
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Protocol

import streamlit as st
from itsdangerous import BadSignature, Signer

from dashboard.streamlit_private import Runtime, get_secrets_auth_section, login_cookie, login_origin
from isoviz.errors import StoreError
from isoviz.operations.access import links
from isoviz.operations.access.visitors import OPERATOR, People, Role, Visitor


class SignIn(Protocol):
    """One way to sign in. `visitor` is called at every request, message and rerun, so revoked access ends immediately."""

    def visitor(self, cookies: Mapping[str, str]) -> Visitor | None:
        """The visitor with these cookies; None if they have to sign in."""


class Open(enum.Enum):
    """Access without signing in."""

    READ_ONLY = Visitor("public", Role.VIEWER)
    """A public demo: anyone can look, no one can start anything."""
    UNGUARDED = OPERATOR
    """Anyone who can reach the port is the operator; only on the loopback address."""

    def visitor(self, cookies: Mapping[str, str]) -> Visitor:
        """Always the same."""
        del cookies
        return self.value


class ByLink:
    """A link per role; opening one sets a cookie signed with its secret.

    Args:
        folder: returns the store's folder, which contains the links.
        cookie: the cookie's name. Browsers share cookies between the ports of a host, so it should contain the port.
        roles: roles whose links are valid.
        class_is_open: whether an open class has this code; its students are viewers until it ends.
    """

    def __init__(
        self,
        folder: Callable[[], Path],
        cookie: str,
        roles: Iterable[Role] = tuple(Role),
        class_is_open: Callable[[str], bool] = lambda code: False,
    ) -> None:
        self.folder = folder
        self.cookie = cookie
        self.roles = frozenset(roles)
        self.class_is_open = class_is_open
        self._lock = threading.Lock()
        self._once: tuple[str, float, Role] | None = None

    def links(self) -> links.Links:
        """The current links."""
        return links.read(self.folder())

    def one_time_secret(self, role: Role, seconds: float = 60.0) -> str:
        """A secret that works once. The server passes it to the browser on the command line, which every account of the
        machine can read, so it must not stay valid."""
        secret = secrets.token_urlsafe(24)
        with self._lock:
            self._once = secret, time.monotonic() + seconds, role
        return secret

    def visitor(self, cookies: Mapping[str, str]) -> Visitor | None:
        """The visitor named in the signed cookie."""
        value = cookies.get(self.cookie, "")
        kind = value.partition("-")[0]
        role = Role.VIEWER if kind == _STUDENT else _ROLES.get(kind)
        if role not in self.roles:
            return None
        try:
            signed = _signer(self.links(), role).unsign(value).decode("ascii")
        except (BadSignature, UnicodeError, StoreError):  # StoreError: the links cannot be read, so no one is signed in
            return None
        name = signed.partition("-")[2]
        if kind == _STUDENT:
            code, _, name = name.partition("-")
            if not self.class_is_open(code):
                return None
        return OPERATOR if role is Role.OPERATOR else Visitor(name, role)

    def admit_student(self, code: str) -> str | None:
        """The cookie for a student of this class, which ends with the class; None if the viewer's link is not valid here."""
        if Role.VIEWER not in self.roles:
            return None
        try:
            signer = _signer(self.links(), Role.VIEWER)
        except StoreError:
            return None
        return signer.sign(f"{_STUDENT}-{code}-{secrets.token_hex(8)}").decode("ascii")

    def admit(self, secret: str, cookies: Mapping[str, str]) -> str | None:
        """The cookie for a visitor who opens a link with this secret; None if no link has this secret.

        A returning browser keeps its visitor id, and so its runs.
        """
        try:
            current_links = self.links()
        except StoreError:
            return None
        role = self._role_of_one_time(secret) or current_links.role_of(secret)
        if role not in self.roles:
            return None
        before = self.visitor(cookies)
        name = before.id if before is not None and before != OPERATOR else secrets.token_hex(8)
        return _signer(current_links, role).sign(f"{role.name.lower()}-{name}").decode("ascii")

    def bearer(self, secret: str) -> Visitor | None:
        """The visitor for a program with this secret; None if no link has it. All programs with the same link are one visitor."""
        try:
            role = self.links().role_of(secret)
        except StoreError:
            return None
        if role not in self.roles:
            return None
        return OPERATOR if role is Role.OPERATOR else Visitor(f"api-{role.name.lower()}", role)

    def _role_of_one_time(self, secret: str) -> Role | None:
        with self._lock:
            if self._once is None:
                return None
            secret_kept, until, role = self._once
            if not hmac.compare_digest(secret_kept.encode(), secret.encode("utf-8", "surrogateescape")):
                return None
            self._once = None
            return role if time.monotonic() < until else None


class ByLogin:
    """Streamlit's login (`[auth]` in secrets.toml). Reads Streamlit's signed cookie, so that routes recognise the same visitors as
    sessions."""

    def __init__(self, people: People) -> None:
        self.people = people

    @staticmethod
    def is_configured() -> bool:
        """Whether secrets.toml has an `[auth]` section."""
        return bool(get_secrets_auth_section())

    def visitor(self, cookies: Mapping[str, str]) -> Visitor | None:
        """The visitor who logged in, if they are listed."""
        claims = self.claims(cookies)
        return None if claims is None else self.people.visitor(claims)

    def claims(self, cookies: Mapping[str, str]) -> Mapping[str, Any] | None:
        """The login provider's claims about the visitor, listed or not; None without a login."""
        cookie_value = login_cookie(cookies)
        try:
            claims = json.loads(cookie_value) if cookie_value else None
        except ValueError:
            return None
        if not isinstance(claims, dict) or claims.get("is_logged_in") is not True:
            return None
        # signed for this app, not for another app with the same secret
        return claims if claims.get("origin") == login_origin() else None

    @staticmethod
    def providers() -> list[str]:
        """Names of the sections `[auth.NAME]`, or `default` if `[auth]` itself configures the provider."""
        section = get_secrets_auth_section()
        return [name for name, value in section.items() if hasattr(value, "items")] or ["default"]


_SCOPE = "isoviz.visitor"
_STUDENT = "student"
"""Begins the cookie of a viewer who joined a class with its code, in place of the role."""
_ROLES = {role.name.lower(): role for role in Role}
_sign_in: SignIn | None = None


def sign_in_by(sign_in: SignIn | None) -> None:
    """Set how visitors sign in on this server."""
    global _sign_in
    _sign_in = sign_in


def current() -> Visitor:
    """The visitor of the current page.

    Stops the script, with a message, if the visitor's link or login has ended. Without a server, in tests, it is
    the operator.
    """
    if _sign_in is None:
        if _served():  # started by `streamlit run dashboard/app.py`, without access control
            _stop("This app was started without its access control. Start it with `python -m isoviz app`.")
        return OPERATOR
    visitor = _sign_in.visitor(st.context.cookies)
    if visitor is None:
        _stop("Your link or login has expired. Request a new link, or reload the page to log in again.")
        raise AssertionError("the script has stopped")
    return visitor


def viewers_secret() -> str | None:
    """The secret of the viewer link, if visitors sign in by link: a teacher's students join as viewers."""
    if not isinstance(_sign_in, ByLink) or Role.VIEWER not in _sign_in.roles:
        return None
    return _sign_in.links().secrets[Role.VIEWER]


def offer_logout() -> None:
    """Log-out button in the sidebar of a logged-in visitor."""
    if isinstance(_sign_in, ByLogin):
        st.sidebar.button("Log out", on_click=st.logout, icon=":material/logout:", help=f"You are {current().id}.")


def note_request(scope: MutableMapping[str, Any], visitor: Visitor) -> None:
    """Attach the visitor to a request that `authentication` has admitted."""
    scope[_SCOPE] = visitor


def of_request(scope: Mapping[str, Any]) -> Visitor | None:
    """The visitor of a request; None if it did not pass `authentication`. In tests without a server, the operator."""
    visitor = scope.get(_SCOPE)
    if isinstance(visitor, Visitor):
        return visitor
    return OPERATOR if _sign_in is None and not _served() else None


def _stop(message: str) -> None:
    st.error(message, icon=":material/lock:")
    st.stop()


def _served() -> bool:
    """Whether a real server runs this script instead of a test: Streamlit's AppTest uses a mock."""
    return Runtime.exists() and type(Runtime.instance()) is Runtime


def _signer(current_links: links.Links, role: Role) -> Signer:
    return Signer(current_links.secrets[role], salt="isoviz.visitor", digest_method=hashlib.sha256)
