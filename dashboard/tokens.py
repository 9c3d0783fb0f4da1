"""Short-lived signed tokens: what a page hands to its components so that the routes know which runs they may read.

Routes run outside any session, so this signature is all they have to go by.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from itsdangerous import BadSignature, TimestampSigner

MAX_AGE = 12 * 3600
"""Seconds a token is good for: a working day with the tab left open. Every rerun of the page hands out a new one."""

_FILE = "token.key"


def issue(folder: Path, runs: Iterable[str]) -> str:
    """A token that allows reading exactly these runs of the store in `folder`."""
    return _signer(folder).sign(",".join(runs)).decode("ascii")


def allows(folder: Path, token: str, run: str, max_age: int = MAX_AGE) -> bool:
    """Whether `token` is genuine, young enough and covers `run`."""
    try:
        value = _signer(folder).unsign(token, max_age=max_age)
    except BadSignature:  # SignatureExpired is one of these
        return False
    return run in value.decode("ascii").split(",")


def _signer(folder: Path) -> TimestampSigner:
    return TimestampSigner(_secret(folder), salt="isoviz.runs")


def _secret(folder: Path) -> bytes:
    path = folder / _FILE
    if not path.exists():
        # Written aside and linked into place: of two servers that start at once, one wins and neither reads half a key.
        handle, name = tempfile.mkstemp(dir=folder, prefix=".token-")  # mode 0600
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_hex(32).encode())
        try:
            os.link(name, path)
        except FileExistsError:
            pass
        finally:
            os.unlink(name)
    return path.read_bytes()
