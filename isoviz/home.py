"""Where IsoViz keeps its runs on this machine."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

from isoviz import boundary

DATABASE = "isoviz.db"


def home() -> Path:
    """The folder of everything that is kept: `ISOVIZ_HOME`, else `isoviz` in the user's data directory. It may not exist yet."""
    chosen = os.environ.get("ISOVIZ_HOME")
    if chosen:
        return boundary.path(chosen, "store").absolute()
    return Path(platformdirs.user_data_dir("isoviz", appauthor=False))


def store_url(option: str | Path | None) -> str:
    """The database URL of a store.

    Args:
        option: a database URL, a folder, or None for `ISOVIZ_STORE` (either of them), else the folder of `home()`.

    Raises:
        InputError: a folder that no machine can have.

    Returns:
        The URL as it was given, or that of the SQLite file in the folder.
    """
    option = option or os.environ.get("ISOVIZ_STORE")
    if isinstance(option, str) and "://" in option:
        return option
    folder = home() if option is None else boundary.path(option, "store").absolute()
    return f"sqlite:///{(folder / DATABASE).as_posix()}"
