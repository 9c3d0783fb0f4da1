"""Streamlit's private modules: used in one file, for the one minor version that is installed and tested here."""

from __future__ import annotations

import ast
import tomllib
from importlib.metadata import version
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import streamlit as st
from packaging.requirements import Requirement
from streamlit.runtime.app_session import AppSession

from dashboard import streamlit_private

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = ("streamlit.delta_generator", "streamlit.testing.v1")


def imported(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def test_one_file_imports_them() -> None:
    files = [path for folder in ("dashboard", "pages") for path in (ROOT / folder).rglob("*.py")]
    private = {
        path.name for path in files if any(m.startswith("streamlit.") and m not in PUBLIC for m in imported(path))
    }
    assert private == {"streamlit_private.py"}


@pytest.mark.parametrize("extra", ["app", "login"])
def test_only_the_tested_minor_version_is_allowed(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (allowed,) = [
        requirement.specifier
        for requirement in map(Requirement, project["optional-dependencies"][extra])
        if requirement.name == "streamlit"
    ]
    major, minor, *_ = version("streamlit").split(".")
    assert version("streamlit") in allowed and f"{major}.{int(minor) + 1}" not in allowed


def test_each_name_is_there_and_works_without_a_server() -> None:
    assert all(hasattr(streamlit_private, name) for name in streamlit_private.__all__)
    assert streamlit_private.session_id() is None and streamlit_private.session_is_open("any")
    assert streamlit_private.login_cookie({}) is None


def test_no_visitor_clears_the_caches_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    clear = vars(AppSession)["_handle_clear_cache_request"]  # answers the browser's message
    monkeypatch.setattr(AppSession, "_handle_clear_cache_request", clear)  # puts it back afterwards
    streamlit_private.ignore_cache_clearing()
    monkeypatch.setattr(st.cache_data, "clear", lambda: pytest.fail("cleared"))
    AppSession._handle_clear_cache_request(MagicMock())
