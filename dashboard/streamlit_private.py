"""All that this app uses of Streamlit's private modules, which may change with any version.

`pyproject.toml` therefore allows only the minor version for which `tests/dashboard/test_streamlit_private.py` passes.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import mmap
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from streamlit.auth_util import get_secrets_auth_section, get_validated_redirect_uri, is_authlib_installed
from streamlit.config import set_option
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.elements.lib.mutable_tab_container import TabContainer
from streamlit.runtime import Runtime, exists, get_instance, memory_uploaded_file_manager
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile, UploadedFileRec

__all__ = [
    "ExpanderContainer",
    "Runtime",
    "StopException",
    "TabContainer",
    "forget_uploads",
    "get_secrets_auth_section",
    "get_validated_redirect_uri",
    "ignore_cache_clearing",
    "is_authlib_installed",
    "keep_uploads_on_disk",
    "login_cookie",
    "login_origin",
    "login_redirect",
    "run_again",
    "run_command_line",
    "session_id",
    "session_is_open",
    "set_option",
    "tidy",
    "uploaded_bytes",
    "uploaded_content",
]

SMALLEST_UPLOAD = 1_000_000
"""Bytes that an upload counts at least, because each keeps a file open."""
_WORTH_A_COLLECTION = 20
"""Collections of the newest objects, about 700 each, after which all objects are looked through: a page makes more."""
_LONGEST_WAIT = 30.0
"""Seconds after which garbage is collected although pages are drawn."""


def session_id() -> str | None:
    """The session whose page this thread runs; None outside a page, as in reports of the command line."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


def session_is_open(session: str) -> bool:
    """Whether the tab of a session is open; True without a server, as in tests."""
    return not exists() or get_instance().is_active_session(session)


def run_again(session: str) -> None:
    """Run the page of an open session once more, as it is; call it in the server's event loop."""
    info: Any = get_instance()._session_mgr.get_active_session_info(session)
    if info is not None:
        info.session.request_rerun(info.session._client_state)


async def tidy(seconds: float = 5.0) -> None:
    """Close each session once it can no longer be reconnected, which Streamlit does only when it looks for another one, and collect
    garbage while no page is drawn, which Streamlit does after each run of each page: a tenth of a second in which no other page runs.

    Args:
        seconds: how often to look.
    """
    manager: Any = get_instance()._session_mgr
    stored = manager._session_storage._cache
    waited, collected = 0.0, _young_collections()

    def close(session: str, info: Any) -> None:
        if not manager.is_active_session(session):  # a reconnected session is removed from the stored ones too
            info.session.shutdown()

    stored._on_remove = close
    while True:
        await asyncio.sleep(seconds)
        expired, active = stored.expire(), manager.list_active_sessions()
        drawn = any(info.session._state is AppSessionState.APP_IS_RUNNING for info in active)
        waited += seconds
        if expired or (
            _young_collections() > collected + _WORTH_A_COLLECTION and (not drawn or waited > _LONGEST_WAIT)
        ):
            gc.unfreeze()
            gc.collect()
            gc.freeze()  # Python's own collections until the next look pass over what stays
            waited, collected = 0.0, _young_collections()
        if expired and not active and sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
            libc.malloc_trim(0)  # glibc keeps the memory of threads that have ended


def _young_collections() -> int:
    """How often Python has looked through the newest objects; grows with what is allocated, not with time."""
    return int(gc.get_stats()[0]["collections"])


def ignore_cache_clearing() -> None:
    """Ignore the browser's message that clears the caches of all visitors."""
    AppSession._handle_clear_cache_request = lambda self: None  # type: ignore[method-assign]


def keep_uploads_on_disk(folder: Callable[[], Path]) -> None:
    """Keep files that are uploaded to open pages in this folder instead of in memory. They have no names, so they end with the server.

    Call it before the app is made.
    """

    class UploadsOnDisk(MemoryUploadedFileManager):
        def add_file(self, session_id: str, file: UploadedFileRec) -> None:
            with tempfile.TemporaryFile(dir=folder()) as stored:
                stored.write(file.data)
                stored.flush()
                super().add_file(session_id, file._replace(data=_OnDisk(stored.fileno(), len(file.data))))

    memory_uploaded_file_manager.MemoryUploadedFileManager = UploadsOnDisk  # type: ignore[misc]


class _OnDisk(bytes):
    """No bytes, which are what Streamlit copies for each run of a page, and the content, which ends with this object."""

    content: memoryview

    def __new__(cls, file: int, size: int) -> _OnDisk:
        empty = super().__new__(cls)
        empty.content = memoryview(mmap.mmap(file, size, access=mmap.ACCESS_READ) if size else b"")
        return empty


def uploaded_content(file: UploadedFile) -> memoryview:
    """The content of a file from a page's upload field."""
    records = get_instance().uploaded_file_mgr.get_files(session_id() or "", [file.file_id])
    data = records[0].data if records else b""
    return data.content if isinstance(data, _OnDisk) else file.getbuffer()


def forget_uploads(session: str) -> None:
    """Delete the files that a session has uploaded."""
    get_instance().uploaded_file_mgr.remove_session_files(session)


def uploaded_bytes() -> dict[str, int]:
    """The size of the files that each session has uploaded; see `SMALLEST_UPLOAD`."""
    manager = get_instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)
    with manager._lock:
        return {
            session: sum(max(len(getattr(file.data, "content", b"")), SMALLEST_UPLOAD) for file in files.values())
            for session, files in manager.file_storage.items()
        }


def run_command_line(arguments: list[str]) -> None:
    """`streamlit ARGUMENTS`."""
    from streamlit.web.cli import main

    main(arguments, prog_name="streamlit")


def login_redirect(provider: str) -> str:
    """The URL path that starts a login with this provider."""
    from streamlit.user_info import generate_login_redirect_url

    return generate_login_redirect_url(provider)


def login_origin() -> str | None:
    """This app's address in the login settings."""
    from streamlit.auth_util import get_origin_from_redirect_uri

    return get_origin_from_redirect_uri()


def login_cookie(cookies: Mapping[str, str]) -> bytes | None:
    """The login provider's claims in a request's cookies, as signed JSON whose signature is valid; None without them."""
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.server_util import AUTH_COOKIE_NAME, get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value

    secret = get_cookie_secret()

    def part(name: str) -> bytes | None:
        value = cookies.get(name)
        try:
            return None if value is None else decode_signed_value(secret, name, value.encode("latin-1"))
        except UnicodeError:
            return None

    return get_cookie_with_chunks(part, AUTH_COOKIE_NAME)
