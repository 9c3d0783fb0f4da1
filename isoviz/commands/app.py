"""`isoviz app`: the dashboard, started from the right folder with the right flags."""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path

from isoviz.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def run(options: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM; the exit code is then 0. Where the system can, this process becomes the server."""
    server = ROOT / "dashboard" / "server.py"
    if not server.is_file():
        raise InputError("app: the dashboard lies beside the engine in a source checkout; run this command from one")
    if importlib.util.find_spec("streamlit") is None:
        raise InputError("app: streamlit is not installed; run `make app`, or `pip install -r requirements.txt`")
    if _taken(options.port):
        raise InputError(f"--port: {options.port} is in use on this machine; choose another", field="port")
    # Streamlit reads .streamlit/config.toml from the current folder, and puts the script's folder on the import path
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "dashboard.serving", str(server), "--server.port", str(options.port)]
    command += ["--server.address", options.host, "--server.headless", "true" if options.headless else "false"]
    environment = {**os.environ, "PYTHONPATH": path}
    if options.store:
        folder = "" if "://" in options.store else os.path.abspath(options.store)
        environment["ISOVIZ_STORE"] = folder or options.store
    if sys.platform != "win32":
        os.chdir(ROOT)
        os.execve(sys.executable, command, environment)
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # Streamlit got it too and is closing; wait for it
            continue


def _taken(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False
