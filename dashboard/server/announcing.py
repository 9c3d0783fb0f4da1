"""Reads the access settings, and announces the links in the terminal and to the browser."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
import urllib.request
import webbrowser
from urllib.parse import urlencode

import streamlit as st

from dashboard.server import class_routes
from dashboard.shared import menu, resources
from dashboard.shared.visitor import ByLink, ByLogin, Open, SignIn
from dashboard.streamlit_private import get_validated_redirect_uri, is_authlib_installed, set_option
from isoviz.errors import InputError, StoreError
from isoviz.operations.access import allowed_hosts
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.access.visitors import People, Role

OPEN_BROWSER = "ISOVIZ_OPEN_BROWSER"
"""Set by `python -m isoviz app`, except with `--headless`."""
OPEN_SET = "ISOVIZ_OPEN_SET"
"""Kind and key of the stored set on which the app opens: `isoviz FILE`."""

_ANY = ("", "0.0.0.0", "::")


def settings() -> tuple[AllowedHosts, SignIn]:
    """Access settings from the environment and from Streamlit.

    Raises:
        InputError: they contradict each other, or would admit anyone who can reach this machine.
    """
    listening = st.get_option("server.address")
    allowed_hosts.refuse_unguarded(listening)
    environment = dict(os.environ)
    if ByLogin.is_configured() and not environment.get(
        allowed_hosts.URL
    ):  # the login provider redirects to the public address
        environment[allowed_hosts.URL] = (get_validated_redirect_uri() or "").removesuffix("/oauth2callback")
    bounds = AllowedHosts.from_environment(listening, environment)
    if not st.get_option("server.baseUrlPath"):
        set_option("server.baseUrlPath", bounds.path)
    if bounds.origins:  # Streamlit checks the WebSocket's origin too
        set_option("server.corsAllowedOrigins", sorted(bounds.origins))
    return bounds, _sign_in(bounds)


def _sign_in(bounds: AllowedHosts) -> SignIn:
    if allowed_hosts.switched_on(allowed_hosts.READ_ONLY):
        return Open.READ_ONLY
    if ByLogin.is_configured():
        if not is_authlib_installed():
            raise InputError("login is configured, but Authlib is missing: pip install 'streamlit[auth]'")
        return ByLogin(People.from_environment())
    if allowed_hosts.switched_on(allowed_hosts.NO_TOKEN):
        return Open.UNGUARDED
    # The operator's link gives access to every file of this account, so it must not travel over an unencrypted network.
    roles = tuple(Role) if bounds.on_loopback else (Role.RUNNER, Role.VIEWER)
    return ByLink(
        lambda: resources.store().folder, f"isoviz_{st.get_option('server.port')}", roles, class_routes.is_open
    )


def announce(bounds: AllowedHosts, sign_in: SignIn, base_url: str) -> None:
    """Print the app's address and how to sign in; open a browser if requested."""
    host = bounds.listening or ""
    url = bounds.url or _url_of(_address_of_this_machine() if host in _ANY else host, base_url)
    print(f"IsoViz is served at {url}", flush=True)
    try:
        for line in _sign_in_lines(bounds, sign_in, url):
            print(line, flush=True)
    except StoreError as error:
        print(f"  No one can sign in: {error}", flush=True)
        return
    # removed, so that workers get the same environment with and without a browser
    if os.environ.pop(OPEN_BROWSER, "") and _has_screen():
        threading.Thread(target=_open_browser, args=(sign_in, base_url), name="open-browser", daemon=True).start()


def _sign_in_lines(bounds: AllowedHosts, sign_in: SignIn, url: str) -> list[str]:
    if isinstance(sign_in, ByLink):
        current_links = sign_in.links()
        if Role.OPERATOR in sign_in.roles:
            return [
                f"  Your link:     {current_links.address(url, Role.OPERATOR, *_first_page())}",
                "  Links for others, as runners or viewers: python -m isoviz links show",
            ]
        lines = [
            f"  Runner's link: {current_links.address(url, Role.RUNNER)}",
            f"  Viewer's link: {current_links.address(url, Role.VIEWER)}",
            "  Runners can launch runs, viewers can only look. To replace the links: python -m isoviz links renew",
        ]
        if not bounds.is_https(_scheme(), url.partition("//")[2].partition("/")[0]):
            lines.append("  Warning: without TLS, others on the network can read the traffic; see docs/security.md.")
        return lines
    if isinstance(sign_in, ByLogin):
        return ["  Visitors log in with their account."]
    if sign_in is Open.READ_ONLY:
        return ["  Read-only: anyone can look, and no one can start anything."]
    return ["  Warning: no token required. Every account on this machine can use IsoViz with your rights."]


def _first_page() -> tuple[str, dict[str, str]]:
    """Path and query of the page that the operator sees first."""
    kind, _, key = os.environ.get(OPEN_SET, "").partition(" ")
    return ("explore", menu.explore_own(key, kind)) if key else ("", {})


def _scheme() -> str:
    return "https" if st.get_option("server.sslCertFile") else "http"


def _url_of(host: str, base_url: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{_scheme()}://{shown}:{st.get_option('server.port')}" + (f"/{base_url}" if base_url else "")


def _address_of_this_machine() -> str:
    """This machine's probable network address: that of its default route."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address: nothing is sent, but the system selects a route
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def _has_screen() -> bool:
    """Whether there is a display: without one, a text browser would take over this terminal."""
    if sys.platform in ("win32", "darwin"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _open_browser(sign_in: SignIn, base_url: str) -> None:
    """Open the browser once the server responds."""
    host = st.get_option("server.address") or ""
    url = _url_of("127.0.0.1" if host in _ANY else host, base_url)
    for _ in range(100):
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=2):
                break
        except OSError:
            time.sleep(0.1)
    page, query = _first_page()
    if isinstance(sign_in, ByLink):
        query["token"] = sign_in.one_time_secret(max(sign_in.roles))
    webbrowser.open(f"{url}/{page}?{urlencode(query)}")
