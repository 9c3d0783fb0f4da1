"""The links by which people come in: one secret per role, kept beside the runs and changed at will."""

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

from isoviz.access.visitors import Role
from isoviz.errors import StoreError

PARAMETER = "token"
"""The query parameter of a link that carries its secret."""

_FILE = "links.json"


@dataclass(frozen=True)
class Links:
    """The secret of each role; what the cookies of its visitors are signed with, too, so that they end with it."""

    secrets: Mapping[Role, str]

    def role_of(self, secret: str) -> Role | None:
        """The role that this secret admits to, compared in constant time; None if it admits to none."""
        given = secret.encode("utf-8", "surrogateescape")
        found = [role for role, kept in self.secrets.items() if hmac.compare_digest(kept.encode(), given)]
        return found[0] if found else None

    def address(self, url: str, role: Role) -> str:
        """The link to hand out.

        Args:
            url: where the app is reached, without a query.
            role: of visitors who open the link.
        """
        return f"{url.rstrip('/')}/?{urlencode({PARAMETER: self.secrets[role]})}"


def path_of(folder: Path) -> Path:
    """The file with the links of the store in this folder; only the account that owns the store can read it."""
    return folder / _FILE


def read(folder: Path) -> Links:
    """The links of the store in this folder, which are made at the first reading.

    Raises:
        StoreError: the file cannot be read or written, or it has been changed by hand.
    """
    path = path_of(folder)
    try:
        if not path.exists():
            _write(folder, {role: _new_secret() for role in Role}, replace=False)
        kept = json.loads(path.read_text("utf-8"))
        return Links({role: _checked(kept[role.name.lower()]) for role in Role})
    except OSError as error:
        raise StoreError(f"cannot read the links in {path}: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"{path} does not contain links; remove it, and IsoViz creates new ones") from error


def renew(folder: Path, roles: Iterable[Role] = tuple(Role)) -> Links:
    """New secrets for these roles: their old links, and visitors who used them, are refused from now on.

    Raises:
        StoreError: as `read`.
    """
    chosen = set(roles)
    old = read(folder).secrets
    try:
        _write(folder, {role: _new_secret() if role in chosen else old[role] for role in Role}, replace=True)
    except OSError as error:
        raise StoreError(f"cannot write the links in {path_of(folder)}: {error.strerror or error}") from error
    return read(folder)


def _new_secret() -> str:
    return secrets.token_urlsafe(24)


def _checked(secret: object) -> str:
    # A short or empty secret could be guessed: a file that was cut off or edited by hand lets no one in.
    if not isinstance(secret, str) or len(secret) < 16 or not secret.isascii():
        raise ValueError("no secret")
    return secret


def _write(folder: Path, kept: Mapping[Role, str], *, replace: bool) -> None:
    """Written aside and moved into place: readers see the old file or the new, and of two first servers one wins."""
    handle, name = tempfile.mkstemp(dir=folder, prefix=".links-")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({role.name.lower(): secret for role, secret in kept.items()}, file, indent=1)
        if replace:
            os.replace(name, path_of(folder))
        else:
            os.link(name, path_of(folder))
    except FileExistsError:
        pass
    finally:
        Path(name).unlink(missing_ok=True)
