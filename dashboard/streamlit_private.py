"""All that this app uses of Streamlit's private modules, which may change with any version.

`pyproject.toml` therefore allows only the minor version for which `tests/dashboard/test_streamlit_private.py` passes.
"""

from __future__ import annotations

from collections.abc import Mapping

from streamlit.auth_util import get_secrets_auth_section, get_validated_redirect_uri, is_authlib_installed
from streamlit.config import set_option
from streamlit.elements.lib.mutable_expander_container import ExpanderContainer
from streamlit.runtime import Runtime, exists, get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import StopException, get_script_run_ctx

__all__ = [
    "ExpanderContainer",
    "Runtime",
    "StopException",
    "get_secrets_auth_section",
    "get_validated_redirect_uri",
    "is_authlib_installed",
    "login_cookie",
    "login_origin",
    "login_redirect",
    "run_command_line",
    "session_id",
    "session_is_open",
    "set_option",
    "uploaded_bytes",
]


def session_id() -> str | None:
    """The session whose page this thread runs; None outside a page, as in reports of the command line."""
    context = get_script_run_ctx(suppress_warning=True)
    return None if context is None else context.session_id


def session_is_open(session: str) -> bool:
    """Whether the tab of a session is open; True without a server, as in tests."""
    return not exists() or get_instance().is_active_session(session)


def uploaded_bytes() -> dict[str, int]:
    """The size of the files that each open page has uploaded."""
    manager = get_instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)
    held = list(manager.file_storage.items())
    return {
        session: sum(len(file.data) for file in files.values()) for session, files in held if session_is_open(session)
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
