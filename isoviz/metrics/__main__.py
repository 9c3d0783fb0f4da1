"""`python -m isoviz.metrics` prints the table of docs/metrics.md, one line per metric."""

from __future__ import annotations

from isoviz import metrics
from isoviz.metrics.protocol import CHANGES, Metric

_HEADER = (
    "measure",
    "what it sees",
    "what it cannot see",
    "range",
    "isotropic",
    "unchanged by",
    "defined from",
    "enough points",
    "source",
)


def markdown_table() -> str:
    """The table of the whole catalogue."""
    lines = [_HEADER, ("---",) * len(_HEADER), *(_cells(metric) for metric in metrics.catalogue().values())]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _cells(metric: Metric) -> tuple[str, ...]:
    unchanged = ", ".join(change for change in CHANGES if change in metric.unchanged_by)
    return (
        f"`{metric.slug}`",
        metric.sees,
        metric.blind_to,
        metric.range.text,
        metric.at_isotropy.text,
        f"{unchanged} (together with {metric.jointly})" if metric.jointly else unchanged,
        f"n = {metric.minimum}" + (f", d = {metric.minimum_d}" if metric.minimum_d > 1 else ""),
        metric.enough.text,
        f"{metric.paper.text}, {metric.paper.identifier}",
    )


if __name__ == "__main__":
    print(markdown_table())
