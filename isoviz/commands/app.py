"""`isoviz app`: start the dashboard."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
from collections.abc import Mapping

from isoviz.access import links, policy, reach
from isoviz.access.reach import Reach
from isoviz.commands import dashboard
from isoviz.commands.options import add_store, port
from isoviz.errors import InputError


def add_options(app: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    app.add_argument("--port", type=port, default=8501)
    app.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    add_store(app, json=False)
    access = app.add_argument_group("access", "who may open it, and from where: docs/security.md")
    access.add_argument("--url", metavar="URL", help="its public URL behind a proxy: https://isoviz.example.org")
    for name, text in (
        ("host", "one more host name it answers to"),
        ("origin", "one more origin whose pages may call it, for a proxy that changes the Host"),
        ("frame", "an origin whose pages may embed it in a frame"),
    ):
        access.add_argument(f"--allow-{name}", action="append", default=[], metavar=name.upper(), help=text)
    access.add_argument(
        "--roots",
        nargs="*",
        metavar="DIR",
        help="folders below which the browser may name data and models (default: $ISOVIZ_ROOTS, else this folder and your home "
        "folder; none where others can reach the server)",
    )
    access.add_argument(
        "--new-links", action="store_true", help="make new links first; old links and their cookies stop working"
    )
    access.add_argument(
        "--no-token", action="store_true", help="give anyone on this machine your rights; loopback only"
    )
    access.add_argument(
        "--api-writes",
        action="store_true",
        help="let programs launch and stop runs through the HTTP API: docs/agents.md",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; then return 0. Where the system allows it, this process becomes the server."""
    server = dashboard.require("app", "server/main.py")
    if _taken(options.port):
        raise InputError(f"--port: {options.port} is in use on this machine; choose another", field="port")
    # Streamlit reads .streamlit/config.toml from the current folder, and puts the script's folder on the import path
    command = [sys.executable, "-m", "dashboard.server.serving", str(server), "--server.port", str(options.port)]
    # The server opens the browser at a link with a token; Streamlit would open the bare address.
    command += ["--server.address", options.host, "--server.headless", "true"]
    environment = {**dashboard.environment(), **_settings(options)}
    reach.refuse_unguarded(options.host, environment)
    reachable = Reach.from_environment(options.host, environment)
    environment |= _roots(options, reachable, environment)
    policy.read(reachable, environment)
    if options.new_links:
        from isoviz.runs.store import Store

        links.renew(Store(options.store).folder)
    if sys.platform != "win32":
        os.chdir(dashboard.ROOT)
        os.execve(sys.executable, command, environment)
    process = subprocess.Popen(command, cwd=dashboard.ROOT, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # Streamlit received it too; wait until it has closed
            continue


def _settings(options: argparse.Namespace) -> dict[str, str]:
    """Environment variables for the server, from the options."""
    chosen = {
        reach.URL: options.url,
        reach.HOSTS: ",".join(options.allow_host),
        reach.ORIGINS: ",".join(options.allow_origin),
        reach.FRAMES: ",".join(options.allow_frame),
        reach.NO_TOKEN: "1" if options.no_token else "",
        "ISOVIZ_OPEN_BROWSER": "" if options.headless else "1",
        reach.API_WRITES: "1" if options.api_writes else "",
    }
    if options.store:
        chosen["ISOVIZ_STORE"] = options.store if "://" in options.store else os.path.abspath(options.store)
    return {name: value for name, value in chosen.items() if value}


def _roots(options: argparse.Namespace, reachable: Reach, environment: Mapping[str, str]) -> dict[str, str]:
    """Folders that the browser may name: from the option, else the variable, else the default for the current folder. The server
    itself runs in another folder."""
    if options.roots is not None:
        return {policy.ROOTS: os.pathsep.join(os.path.abspath(os.path.expanduser(root)) for root in options.roots)}
    if policy.ROOTS in environment:
        return {}
    return {policy.ROOTS: os.pathsep.join(str(root) for root in policy.default_roots(reachable))}


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
