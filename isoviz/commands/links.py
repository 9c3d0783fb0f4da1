"""`isoviz links`: show or renew the links that open the dashboard."""

from __future__ import annotations

import argparse
import json
import os

from isoviz.access import links, reach
from isoviz.access.reach import Reach
from isoviz.access.visitors import Role
from isoviz.commands.options import add_store, port
from isoviz.errors import unknown_name
from isoviz.runs.store import Store

_MAY = {Role.VIEWER: "looks", Role.RUNNER: "also launches runs", Role.OPERATOR: "may do everything (loopback only)"}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="the link of each role")
    renew = actions.add_parser(
        "renew", help="make new links; the old ones stop working, and their visitors must log in again"
    )
    renew.add_argument("roles", nargs="*", metavar="ROLE", help="viewer, runner or operator (default: all)")
    for action in (show, renew):
        action.add_argument("--url", metavar="URL", help="the public URL (default: $ISOVIZ_URL, else this machine)")
        action.add_argument("--port", type=port, default=8501, help="of the default URL")
        add_store(action)


def run(options: argparse.Namespace) -> int:
    """Print the links; `renew` replaces them first."""
    url = options.url or os.environ.get(reach.URL) or f"http://127.0.0.1:{options.port}"
    url = Reach.from_environment(None, {reach.URL: url}).url or url
    folder = Store(options.store).folder
    secrets = links.renew(folder, _roles(options.roles)) if options.action == "renew" else links.read(folder)
    addresses = {role.name.lower(): secrets.address(url, role) for role in Role}
    if options.json:
        print(json.dumps({"links": addresses}))
        return 0
    for role in Role:
        print(f"{role.name.lower():9} {addresses[role.name.lower()]}   {_MAY[role]}")
    return 0


def _roles(names: list[str]) -> list[Role]:
    by_name = {role.name.lower(): role for role in Role}
    for name in names:
        if name not in by_name:
            raise unknown_name("role", name, by_name, field="roles")
    return [by_name[name] for name in names] or list(Role)
