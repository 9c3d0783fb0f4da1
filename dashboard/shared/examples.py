"""The bundled examples: their badge, their view, and where they were recorded."""

from __future__ import annotations

from typing import Final

from isoviz.demo import EXAMPLE
from isoviz.exploring import results
from isoviz.exploring.request import ViewRequest
from isoviz.runs import examples
from isoviz.runs.rows import RunRow

BADGE: Final = ":gray-badge[example]"


def view_of(request: ViewRequest) -> str | None:
    """The key of the example view for a request, if there is one."""
    if examples.opened() is None:
        return None
    view = results.find(EXAMPLE + "view")
    return EXAMPLE + "view" if view is not None and ViewRequest(**view.facts["request"]) == request else None


def badge(run: RunRow) -> str:
    """Badge of an example; empty for other runs."""
    return f" {BADGE}" if examples.is_example(run.id) else ""


def where_recorded() -> str:
    """`Recorded 2026-11-22 with IsoViz 0.1.0 on 2 cores, …`."""
    shipped = examples.opened()
    if shipped is None:
        return ""
    about = shipped.about
    return f"Recorded {about['recorded']} with IsoViz {about['isoviz']} on {about['processor']}."
