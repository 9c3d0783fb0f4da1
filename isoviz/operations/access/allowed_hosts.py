"""Allowed hosts: the names that the server answers to, origins whose pages may call it, and pages that may embed it.

A page of another site can make a signed-in visitor's browser send requests here, even under its own host name that it resolves to this
machine (DNS rebinding). It cannot choose the `Host` and `Origin` headers of these requests.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from isoviz.errors import InputError, listed
from isoviz.input_validation import is_loopback

URL, HOSTS, ORIGINS, FRAMES = "ISOVIZ_URL", "ISOVIZ_ALLOWED_HOSTS", "ISOVIZ_ALLOWED_ORIGINS", "ISOVIZ_FRAMED_BY"
READ_ONLY, NO_TOKEN, API_WRITES = "ISOVIZ_READ_ONLY", "ISOVIZ_NO_TOKEN", "ISOVIZ_API_WRITES"

_OPTIONS = {URL: "url", HOSTS: "allow-host", ORIGINS: "allow-origin", FRAMES: "allow-frame"}
_PORTS = {"http": 80, "https": 443}
_PATH = re.compile(r"(/(?!\.\.?(/|$))([\w.~-]|%[0-9A-Fa-f]{2})+)*", re.ASCII)


@dataclass(frozen=True)
class AllowedHosts:
    """The operator's settings on addresses.

    Args:
        listening: the address that the server listens on; None for all addresses.
        url: public URL, if different (behind a proxy), with the path below which the proxy serves the app; without query and
            trailing slash.
        hosts: further accepted host names.
        origins: further origins whose pages may send requests, as `https://name:port`.
        frames: origins whose pages may embed the app in a frame.
    """

    listening: str | None
    url: str | None = None
    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()
    frames: tuple[str, ...] = ()

    @classmethod
    def from_environment(cls, listening: str | None, environment: Mapping[str, str] = os.environ) -> AllowedHosts:
        """The settings of the environment variables named above; lists are separated by commas.

        Raises:
            InputError: an invalid URL, path, host or origin.
        """
        url = environment.get(URL, "").strip().rstrip("/") or None
        hosts = {_checked_host(text) for text in _listed(environment, HOSTS)}
        origins = {_checked_origin(text, ORIGINS) for text in _listed(environment, ORIGINS)}
        if url is not None:
            origins.add(_origin(url, URL))
            if not _PATH.fullmatch(urlsplit(url).path):
                raise InputError.at("url", f"expected a path such as /isoviz (got {urlsplit(url).path[:80]!r})")
            hosts.add(str(urlsplit(url).hostname))
        frames = tuple(_checked_origin(text, FRAMES) for text in _listed(environment, FRAMES))
        return cls(listening, url, frozenset(hosts), frozenset(origins), frames)

    @property
    def path(self) -> str:
        """The path of the public URL, decoded: empty, or `/lab/isoviz`."""
        return unquote(urlsplit(self.url or "").path)

    @property
    def on_loopback(self) -> bool:
        """Whether only programs on this machine can connect."""
        return self.listening is not None and is_loopback(self.listening)

    def allows_host(self, header: str) -> bool:
        """Whether to accept a request with this `Host`.

        Numeric addresses cannot be rebound, so a server on the network accepts all of them; a server on the loopback address
        accepts only that.
        """
        name = _name(header)
        if name is None:
            return False
        if is_loopback(name) or name in self.hosts:
            return True
        if self.on_loopback:
            return False
        return _is_address(name) or name in _own_names() or name == (self.listening or "").lower().rstrip(".")

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page with this `Origin` may send a request with this `Host`: the app's pages may, others must be listed."""
        try:
            normal = _origin(origin, ORIGINS)
        except InputError:  # including "null" from sandboxed frames and files
            return False
        parts = urlsplit(normal)
        if normal in self.origins:
            return True
        name, port = _name(host), urlsplit(f"//{host}").port
        if name is None or parts.hostname != name:
            return False
        # `Host` omits a default port.
        default = _PORTS[parts.scheme]
        return (parts.port or default) == (port or default)

    def is_https(self, scheme: str, host: str) -> bool:
        """Whether the browser used TLS for this request, to this server or to a proxy."""
        parts = urlsplit(self.url or "")
        return scheme in ("https", "wss") or (parts.scheme == "https" and parts.hostname == _name(host))


def switched_on(name: str, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether an environment variable is switched on.

    Raises:
        InputError: it is neither on nor off, because a typo must not grant access.
    """
    text = environment.get(name, "").strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("", "0", "false", "no", "off"):
        return False
    raise InputError(f"{name}: expected 1 or 0 (got {text[:40]!r})")


def refuse_unguarded(listening: str | None, environment: Mapping[str, str] = os.environ) -> None:
    """Raise `InputError` if a server on this address, or behind a proxy, would give anyone who can reach it more than read access."""
    if switched_on(READ_ONLY, environment) or not switched_on(NO_TOKEN, environment):
        return
    bounds = AllowedHosts.from_environment(listening, environment)
    public = [origin for origin in sorted(bounds.origins) if not is_loopback(urlsplit(origin).hostname or "")]
    public += [host for host in sorted(bounds.hosts) if not is_loopback(host)]
    if public or not bounds.on_loopback:
        address = listed(public) if bounds.on_loopback else listening or "all addresses"
        instead = "answer to this machine's names only" if bounds.on_loopback else "listen on 127.0.0.1"
        raise InputError.at(
            "host",
            f"with --no-token ({NO_TOKEN}=1) anyone who reaches {address} could start and delete runs; leave --no-token out, "
            f"set {READ_ONLY}=1, or {instead}",
        )


def _listed(environment: Mapping[str, str], name: str) -> list[str]:
    return [part.strip() for part in environment.get(name, "").split(",") if part.strip()]


def _name(header: str) -> str | None:
    """The host of a `Host` header, in lower case and without port and brackets; None if invalid."""
    try:
        parts = urlsplit(f"//{header}")
        _ = parts.port
    except ValueError:
        return None
    if parts.netloc != header or not parts.hostname or "@" in header or any(mark.isspace() for mark in header):
        return None
    return parts.hostname.rstrip(".")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


@functools.cache
def _own_names() -> set[str]:
    # cached, because the second lookup may wait for a name server
    return {name.lower() for name in (socket.gethostname(), socket.getfqdn()) if name}


def _checked_host(text: str) -> str:
    name = _name(text)
    if name is None or "*" in text:
        raise InputError.at("allow-host", f"expected a host name such as isoviz.example.org (got {text[:80]!r})")
    return name


def _checked_origin(text: str, variable: str) -> str:
    origin = _origin(text, variable)
    if urlsplit(text).path.strip("/"):
        option = _OPTIONS[variable]
        raise InputError.at(option, f"an origin has no path: {origin} (got {text[:80]!r})")
    return origin


def _origin(url: str, variable: str) -> str:
    """Scheme, host and port of a URL, written as browsers write them."""
    try:
        parts = urlsplit(url)
        port, name = parts.port, parts.hostname
    except ValueError:
        name, port, parts = None, None, urlsplit("")
    marks = set(url) & set(" ;,'\"*@\\\t\r\n")  # these would change the meaning of our headers
    if parts.scheme not in _PORTS or not name or parts.query or parts.fragment or marks:
        option = _OPTIONS[variable]
        example = "https://isoviz.example.org"
        raise InputError.at(option, f"expected an address such as {example} (got {url[:80]!r})")
    shown = f"[{name}]" if ":" in name else name
    return f"{parts.scheme}://{shown}" + (f":{port}" if port and port != _PORTS[parts.scheme] else "")
