"""Sign-in links: one secret per role, stored with the runs and renewable at any time."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from isoviz.errors import StoreError
from isoviz.operations.access.visitors import Role

PARAMETER = "token"
"""The query parameter with a link's secret."""

_FILE = "links.json"


@dataclass(frozen=True)
class Links:
    """The secret of each role. It also signs the cookies of the role's visitors, so they expire with it."""

    secrets: Mapping[Role, str]

    def role_of(self, secret: str) -> Role | None:
        """The role of a secret, compared in constant time; None if no role has it."""
        secret_bytes = secret.encode("utf-8", "surrogateescape")
        roles = [
            role
            for role, role_secret in self.secrets.items()
            if hmac.compare_digest(role_secret.encode(), secret_bytes)
        ]
        return roles[0] if roles else None

    def address(self, url: str, role: Role, page: str = "", query: Mapping[str, str] | None = None) -> str:
        """A link to share.

        Args:
            url: the app's URL, without a query.
            role: the role of visitors who open the link.
            page, query: what they see first; Home by default.
        """
        return f"{url.rstrip('/')}/{page}?{urlencode({**(query or {}), PARAMETER: self.secrets[role]})}"


def path_of(folder: Path) -> Path:
    """The file with the links of the store in this folder, readable only by the store's owner."""
    return folder / _FILE


def read(folder: Path) -> Links:
    """The links of the store in this folder, created on first use.

    Raises:
        StoreError: the file cannot be read or written, or is invalid.
    """
    path = path_of(folder)
    try:
        if not path.exists():
            _write(folder, {role: _new_secret() for role in Role}, replace=False)
        secrets_by_role = json.loads(path.read_text("utf-8"))
        return Links({role: _checked(secrets_by_role[role.name.lower()]) for role in Role})
    except OSError as error:
        raise StoreError(f"cannot read the links in {path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} does not contain links; remove it, and IsoViz creates new ones") from error


def renew(folder: Path, roles: Iterable[Role] = tuple(Role)) -> Links:
    """Create new secrets for these roles. Their old links, and visitors signed in with them, lose access immediately.

    Raises:
        StoreError: like `read`.
    """
    renewed_roles = set(roles)
    old = read(folder).secrets
    try:
        _write(folder, {role: _new_secret() if role in renewed_roles else old[role] for role in Role}, replace=True)
    except OSError as error:
        raise StoreError(f"cannot write the links in {path_of(folder)}: {error.strerror or error}") from error
    return read(folder)


def _new_secret() -> str:
    return secrets.token_urlsafe(24)


def _checked(secret: object) -> str:
    # A short or empty secret could be guessed, so a truncated or edited file admits no one.
    if not isinstance(secret, str) or len(secret) < 16 or not secret.isascii():
        raise ValueError("no secret")
    return secret


def _write(folder: Path, secrets_by_role: Mapping[Role, str], *, replace: bool) -> None:
    """Write to a temporary file and move it into place atomically; of two servers that start together, one wins."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".links-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({role.name.lower(): secret for role, secret in secrets_by_role.items()}, file, indent=1)
        if replace:
            os.replace(name, path_of(folder))
        else:
            os.link(name, path_of(folder))
    except FileExistsError:
        pass
    finally:
        Path(name).unlink(missing_ok=True)
