"""Where IsoViz keeps its runs on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from isoviz import input_validation

DATABASE = "isoviz.db"


def home() -> Path:
    """The folder for all data: `ISOVIZ_HOME`, else `isoviz` in the user's data directory. It may not exist yet."""
    folder_setting = os.environ.get("ISOVIZ_HOME")
    if folder_setting:
        return input_validation.path(folder_setting, "store").absolute()
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
    folder = home() if option is None else input_validation.path(option, "store").absolute()
    return f"sqlite:///{(folder / DATABASE).as_posix()}"


def make_private(folder: Path) -> None:
    """Create a folder, with missing parents, that only this account may enter. An existing folder keeps its mode.

    Raises:
        OSError: it cannot be created, or is not a folder.
    """
    if not folder.is_dir():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def exposed(folder: Path) -> list[str]:
    """What other accounts can read or change in a store's folder: names of its entries, or the folder itself if they can write
    to it. Empty on systems without POSIX permissions."""
    mode = folder.stat().st_mode if os.name == "posix" else 0
    if mode & 0o022:
        return [str(folder)]
    entries = folder.iterdir() if mode & 0o011 else ()
    return sorted(path.name for path in entries if path.name[0] != "." and path.lstat().st_mode & 0o066)
