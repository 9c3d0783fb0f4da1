"""Who asks: from the cookie that a link or a login left in the browser.

Pages call `current()`; the door in front of the server (`doorway`) and the routes ask the same `Entrance`, so nobody is one
person on a page and another on a route.
"""

from __future__ import annotations

import enum
import hashlib
import secrets
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import streamlit as st
from itsdangerous import BadSignature, Signer
from streamlit.runtime import Runtime

from isoviz.access import links
from isoviz.access.visitors import OPERATOR, Role, Visitor


class Entrance(Protocol):
    """One way in. `visitor` is asked at every request, message and rerun, so what is taken back ends at once."""

    def visitor(self, cookies: Mapping[str, str]) -> Visitor | None:
        """Who sent these cookies; None for somebody who has to come in first."""


class Open(enum.Enum):
    """Ways in that ask for nothing."""

    READ_ONLY = Visitor("public", Role.VIEWER)
    """A public demo: everybody sees, nobody starts anything."""
    UNGUARDED = OPERATOR
    """Whoever reaches the port is who started the server; on the loopback address only."""

    def visitor(self, cookies: Mapping[str, str]) -> Visitor:
        """Always the same."""
        del cookies
        return self.value


class ByLink:
    """A link per role; whoever opens one gets a cookie that is signed with its secret.

    Args:
        folder: the store's, where the links are kept.
        cookie: the cookie's name. Browsers share cookies between the ports of a host, so it should name the port.
    """

    def __init__(self, folder: Path, cookie: str) -> None:
        self.folder = folder
        self.cookie = cookie
        self._lock = threading.Lock()
        self._read: tuple[tuple[int, int], links.Links] | None = None

    def links(self) -> links.Links:
        """The links of now: the file is read again when it was replaced."""
        path = links.path_of(self.folder)
        with self._lock:
            try:
                stat = path.stat()
                version = (stat.st_ino, stat.st_mtime_ns)
            except FileNotFoundError:
                version = (0, 0)
            if self._read is None or self._read[0] != version:
                self._read = version, links.read(self.folder)
            return self._read[1]

    def visitor(self, cookies: Mapping[str, str]) -> Visitor | None:
        """Whoever the signed cookie names."""
        value = cookies.get(self.cookie, "")
        role_name, _, _ = value.partition("-")
        role = _ROLES.get(role_name)
        if role is None:
            return None
        try:
            signed = _signer(self.links(), role).unsign(value).decode("ascii")
        except (BadSignature, UnicodeError):
            return None
        return OPERATOR if role is Role.OPERATOR else Visitor(signed.partition("-")[2], role)

    def admit(self, secret: str, cookies: Mapping[str, str]) -> str | None:
        """The cookie for whoever opens a link with this secret; None if no link has it.

        A browser that came in before keeps its name, and so its runs.
        """
        kept = self.links()
        role = kept.role_of(secret)
        if role is None:
            return None
        before = self.visitor(cookies)
        name = before.id if before is not None and before != OPERATOR else secrets.token_hex(8)
        return _signer(kept, role).sign(f"{role.name.lower()}-{name}").decode("ascii")


_ROLES = {role.name.lower(): role for role in Role}
_entrance: Entrance | None = None


def enter_by(entrance: Entrance | None) -> None:
    """The server says how its visitors come in."""
    global _entrance
    _entrance = entrance


def current() -> Visitor:
    """Whoever looks at the page whose script runs.

    Somebody whose link or login has ended since sees that, and the script stops. In tests without a server it is the operator.
    """
    if _entrance is None:
        if _served():  # by `streamlit run dashboard/app.py`: nothing checks who reaches the port
            _stop("This page was started without the server in front of it. Start it with `python -m isoviz app`.")
        return OPERATOR
    visitor = _entrance.visitor(st.context.cookies)
    if visitor is None:
        _stop("Your link or login has ended. Ask for a new link, or reload the page to log in again.")
        raise AssertionError("the script has stopped")
    return visitor


def _stop(message: str) -> None:
    st.error(message, icon=":material/lock:")
    st.stop()


def _served() -> bool:
    """Whether a real server runs this script, and not a test: Streamlit's AppTest stands in a mock."""
    return Runtime.exists() and type(Runtime.instance()) is Runtime


def _signer(kept: links.Links, role: Role) -> Signer:
    return Signer(kept.secrets[role], salt="isoviz.visitor", digest_method=hashlib.sha256)
