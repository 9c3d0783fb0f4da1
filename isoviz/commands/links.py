"""`isoviz links`: show or renew the links that open the dashboard."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Final

from isoviz.commands.options import StoreOption
from isoviz.commands.output import Answer
from isoviz.errors import unknown_name
from isoviz.operations.access import allowed_hosts, links
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.access.links import Links
from isoviz.operations.access.visitors import Role
from isoviz.operations.operation import argument
from isoviz.runs.store import Store

_MAY = {Role.VIEWER: "looks", Role.RUNNER: "also launches runs", Role.OPERATOR: "may do everything (loopback only)"}


Url = Annotated[str | None, argument("the public URL (default: $ISOVIZ_URL, else this machine)", "URL")]
Port = Annotated[int, argument("of the default URL", ge=1, le=65535)]


def show(url: Url = None, port: Port = 8501, store: StoreOption = None) -> Answer:
    """The link of each role."""
    return _shown(links.read(Store(store).folder), url, port)


def renew(
    roles: Annotated[
        tuple[str, ...], argument("viewer, runner or operator (default: all)", "ROLE", positional=True, nargs="*")
    ] = (),
    url: Url = None,
    port: Port = 8501,
    store: StoreOption = None,
) -> Answer:
    """Make new links; the old ones stop working, and their visitors must log in again."""
    _address(url, port)  # checked before
    return _shown(links.renew(Store(store).folder, _roles(roles)), url, port)


ACTIONS: Final = {"show": show, "renew": renew}


def _address(url: str | None, port: int) -> str:
    url = url or os.environ.get(allowed_hosts.URL) or f"http://127.0.0.1:{port}"
    return AllowedHosts.from_environment(None, {allowed_hosts.URL: url}).url or url


def _shown(secrets: Links, url: str | None, port: int) -> Answer:
    addresses = {role.name.lower(): secrets.address(_address(url, port), role) for role in Role}
    lines = [f"{role.name.lower():9} {addresses[role.name.lower()]}   {_MAY[role]}" for role in Role]
    return Answer({"links": addresses}, "\n".join(lines))


def _roles(names: Sequence[str]) -> list[Role]:
    by_name = {role.name.lower(): role for role in Role}
    for name in names:
        if name not in by_name:
            raise unknown_name("role", name, by_name, field="roles")
    return [by_name[name] for name in names] or list(Role)
