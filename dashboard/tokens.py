"""Signed tokens that a page passes to its components, so that routes know which runs they may read.

Routes run outside any session. `doorway` admits only visitors; a token states what one visitor's page shows. It is bound to that
visitor, so it is useless to others, and expires with their link or login. It contains no time, so clock changes do not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterable
from pathlib import Path

from itsdangerous import BadSignature, Signer

from dashboard import visitor
from isoviz.access.visitors import Visitor

_FILE = "token.key"


def issue(folder: Path, subjects: Iterable[str]) -> str:
    """A token that lets this page's visitor read exactly these runs (or views) of the store in `folder`."""
    body = json.dumps([visitor.current().id, *subjects], separators=(",", ":"))
    return _signer(folder).sign(body).decode("ascii")


def allows(folder: Path, token: str, subject: str, asking: Visitor | None) -> bool:
    """Whether `token` is genuine, covers `subject`, and was given to this visitor."""
    try:
        holder, *subjects = json.loads(_signer(folder).unsign(token))
    except BadSignature:
        return False
    return asking is not None and holder == asking.id and subject in subjects


def _signer(folder: Path) -> Signer:
    return Signer(_secret(folder), salt="isoviz.runs", digest_method=hashlib.sha256)


def _secret(folder: Path) -> bytes:
    path = folder / _FILE
    if not path.exists():
        # Written to a temporary file and linked atomically: if two servers start together, one wins and neither reads a partial key.
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
