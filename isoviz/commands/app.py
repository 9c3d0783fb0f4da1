"""`isoviz app`: start the dashboard."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Annotated, Final

from isoviz.commands import dashboard
from isoviz.commands.options import StoreOption
from isoviz.errors import InputError
from isoviz.operations.access import allowed_hosts, policy
from isoviz.operations.access.allowed_hosts import AllowedHosts
from isoviz.operations.operation import argument

ACCESS: Final = "access: who may open it, and from where (docs/security.md)"


def run(
    port: Annotated[int, argument("where it listens", ge=1, le=65535)] = 8501,
    host: Annotated[str, argument("address to listen on; 127.0.0.1 is this machine only", "HOST")] = "127.0.0.1",
    open: Annotated[
        str | None, argument("open Explore on the vectors or texts of this file, as `isoviz FILE` does", "FILE")
    ] = None,
    headless: Annotated[bool, argument("do not open a browser")] = False,
    store: StoreOption = None,
    url: Annotated[
        str,
        argument(
            "its public URL behind a proxy, with the path if it has one: https://example.org/isoviz",
            "URL",
            section=ACCESS,
        ),
    ] = "",
    allow_host: Annotated[
        tuple[str, ...], argument("one more host name it answers to", "HOST", append=True, section=ACCESS)
    ] = (),
    allow_origin: Annotated[
        tuple[str, ...],
        argument(
            "one more origin whose pages may call it, for a proxy that changes the Host",
            "ORIGIN",
            append=True,
            section=ACCESS,
        ),
    ] = (),
    allow_frame: Annotated[
        tuple[str, ...], argument("an origin whose pages may embed it in a frame", "FRAME", append=True, section=ACCESS)
    ] = (),
    roots: Annotated[
        list[str] | None,
        argument(
            "folders below which the browser may name data and models (default: $ISOVIZ_ROOTS, else this folder and your home "
            "folder; none where others can reach the server)",
            "DIR",
            nargs="*",
            section=ACCESS,
        ),
    ] = None,
    no_token: Annotated[
        bool, argument("give anyone on this machine your rights; loopback only", section=ACCESS)
    ] = False,
    api_writes: Annotated[
        bool,
        argument("let programs launch and stop runs through the HTTP API: docs/agents.md", section=ACCESS),
    ] = False,
) -> int:
    """Serve until SIGINT or SIGTERM; then return 0. Where the system allows it, this process becomes the server."""
    server = dashboard.require("app", "server/main.py")
    if _taken(port):
        raise InputError(f"--port: {port} is in use on this machine; choose another", field="port")
    # Streamlit reads .streamlit/config.toml from the current folder, and puts the script's folder on the import path
    command = [sys.executable, "-m", "dashboard.server.serving", str(server), "--server.port", str(port)]
    # The server opens the browser at a link with a token; Streamlit would open the bare address.
    command += ["--server.address", host, "--server.headless", "true"]
    chosen = {
        allowed_hosts.URL: url,
        allowed_hosts.HOSTS: ",".join(allow_host),
        allowed_hosts.ORIGINS: ",".join(allow_origin),
        allowed_hosts.FRAMES: ",".join(allow_frame),
        allowed_hosts.NO_TOKEN: "1" if no_token else "",
        "ISOVIZ_OPEN_BROWSER": "" if headless else "1",
        allowed_hosts.API_WRITES: "1" if api_writes else "",
        "ISOVIZ_STORE": store if store and "://" in store else store and os.path.abspath(store),
    }
    environment = {**dashboard.environment(), **{name: value for name, value in chosen.items() if value}}
    allowed_hosts.refuse_unguarded(host, environment)
    reachable = AllowedHosts.from_environment(host, environment)
    # the server itself runs in another folder
    if roots is not None:
        folders = [os.path.abspath(os.path.expanduser(root)) for root in roots]
        environment[policy.ROOTS] = os.pathsep.join(folders)
    elif policy.ROOTS not in environment:
        environment[policy.ROOTS] = os.pathsep.join(map(str, policy.default_roots(reachable)))
    policy.read(reachable, environment)
    if open is not None:
        from isoviz.vectors import intake

        try:
            summary = intake.import_file(intake.ImportRequest(file=os.path.abspath(open)))
        except InputError as error:  # in the words of a page's field
            words = str(error).removeprefix(f"{error.field}: ")
            raise InputError(f"open: {words}", field="open", advice=error.advice) from None
        environment["ISOVIZ_OPEN_SET"] = f"{summary.kind} {summary.key}"
    if sys.platform != "win32":
        os.chdir(dashboard.ROOT)
        os.execve(sys.executable, command, environment)
    process = subprocess.Popen(command, cwd=dashboard.ROOT, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # Streamlit received it too; wait until it has closed
            continue


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
