"""What tests read off a page, and the address of a view of Explore."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Widget

from isoviz.exploring import results
from isoviz.exploring.request import ViewRequest, key_of, rows_of
from isoviz.exploring.results import ViewResult
from isoviz.models import sources

ROWS = 24
_components_of_packages = functools.cache(manifest_scanner.scan_component_manifests)


@contextmanager
def packages_scanned_once() -> Iterator[None]:
    """AppTest looks for components in all installed packages at every rerun, which takes ten times as long as the page; a server
    does so once."""
    with patch.object(manifest_scanner, "scan_component_manifests", _components_of_packages):
        yield


def key_for(request: ViewRequest) -> str:
    return key_of(request, sources.resolve(request.model), rows_of(request.task, request.data))


def address(request: ViewRequest, **more: str) -> dict[str, str]:
    data = {f"explore_data.{request.task}": request.data} if request.data else {}
    query = {"explore_model": request.model, "explore_task": request.task, "explore_rows": str(request.max_rows)}
    return {**query, **data, **more}


def keep(made: tuple[ViewRequest, dict, dict]) -> ViewResult:  # type: ignore[type-arg]
    """A computed view (request, facts and arrays), where the pages of this test find it."""
    request, facts, arrays = made
    key = key_for(request)
    results.STORE.publish(key, facts, arrays)
    view = results.find(key)
    assert view is not None
    return view


def errors(page: AppTest) -> list[str]:
    assert not page.exception
    return [error.value.replace("\\", "") for error in page.error]


def texts(page: AppTest) -> str:
    """All that the page says in words."""
    kinds = ("title", "header", "markdown", "caption", "text", "error", "info", "warning")
    return "\n".join(str(element.value) for kind in kinds for element in page.get(kind)).replace("\\", "")


def components(page: AppTest) -> list[dict[str, Any]]:
    """The data that the browser gets for each component, in page order."""
    return [json.loads(element.proto.json) for element in page.get("bidi_component") if element.proto.json]


def mounted(page: AppTest) -> list[dict[str, Any]]:
    """That of each figure."""
    assert not page.exception
    return [data for data in components(page) if "spec" in data]


def drawn(page: AppTest) -> list[dict[str, Any]]:
    """What `components.figure` was given, figure by figure, in the order of the page."""
    return [json.loads(data["spec"]) for data in mounted(page)]


def places(page: AppTest) -> dict[str, tuple[int, ...]]:
    """The position in the page's tree of each field that the address holds."""

    def below(block: Any, path: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
        paths = {}
        for number, child in block.children.items():
            here = (*path, number)
            if hasattr(child, "children"):
                paths |= below(child, here)
            elif isinstance(child, Widget) and getattr(child.proto, "query_param_key", ""):
                paths[str(child.key)] = here
        return paths

    return below(page.main, ())
