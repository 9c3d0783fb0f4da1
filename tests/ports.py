"""Ports of the loopback for processes that take a number."""

from __future__ import annotations

import random
import socket

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
