"""Where IsoViz keeps its runs on this machine."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import platformdirs

from isoviz import boundary

DATABASE = "isoviz.db"


def home() -> Path:
    """The folder for all data: `ISOVIZ_HOME`, else `isoviz` in the user's data directory. It may not exist yet."""
    folder_setting = os.environ.get("ISOVIZ_HOME")
    if folder_setting:
        return boundary.path(folder_setting, "store").absolute()
    return Path(platformdirs.user_data_dir("isoviz", appauthor=False))


def store_url(option: str | Path | None) -> str:
    """The database URL of a store.

    Args:
        option: a database URL, a folder, or None for `ISOVIZ_STORE` (a URL or folder), else `home()`.

    Raises:
        InputError: an invalid folder name.

    Returns:
        The given URL, or that of the SQLite file in the folder.
    """
    option = option or os.environ.get("ISOVIZ_STORE")
    if isinstance(option, str) and "://" in option:
        return option
    folder = home() if option is None else boundary.path(option, "store").absolute()
    return f"sqlite:///{(folder / DATABASE).as_posix()}"


def make_private(folder: Path) -> None:
    """Create a folder that only this account may enter, with missing parents; removes other accounts' access to an existing
    folder of this account.

    Raises:
        OSError: it cannot be created.
    """
    if not folder.is_dir():
        for missing in reversed([folder, *folder.parents]):
            if not missing.exists():
                missing.mkdir(mode=0o700, exist_ok=True)
    close_to_others(folder)


def close_to_others(path: Path) -> None:
    """Remove the permissions of group and others from a file or folder of this account; other accounts' files do not change."""
    try:
        status = path.stat()
        if os.name == "posix" and status.st_uid == os.geteuid() and status.st_mode & 0o077:
            path.chmod(stat.S_IMODE(status.st_mode) & ~0o077)
    except OSError:  # gone, or on a file system without permissions
        pass
