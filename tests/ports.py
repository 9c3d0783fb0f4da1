"""Ports of the loopback for processes that take a number, and whether Streamlit answers there."""

from __future__ import annotations

import random
import socket
import urllib.request

_DRAW = random.SystemRandom()


def free_port() -> int:
    """A free port below the ephemeral range, so that no other connection takes it before a slow process listens."""
    for _ in range(1000):
        port = _DRAW.randrange(20_000, 30_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:  # someone's
                continue
        return port
    raise AssertionError("no port is free")


def answers(url: str) -> bool:
    """Whether a Streamlit server is up there."""
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
