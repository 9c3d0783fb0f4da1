"""Names of the catalogue's metrics on screen. A new metric appears on every screen without a change here.

No Streamlit here. These are functions, because a catalogue may grow while the app runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isoviz import methods, metrics
from isoviz.methods.composition import Composed
from isoviz.metrics.protocol import Metric
from isoviz.metrics.scores import REPORTED_ZETA

CLOUDS = {"head": "head input", "layers": "all layers' tokens", "output": "output weights"}
"""Display names of a run's clouds."""
PROMPTS = ("texts",)
"""The inputs of a metric of each text's tokens, which views have and runs do not."""


def of_clouds() -> list[Metric]:
    """Metrics with a number in the record of a view's cloud, in catalogue order."""
    return [
        metric
        for metric in metrics.catalogue().values()
        if metric.kinds & {"rows", "tokens"} and (metric.in_runs or metric.inputs == PROMPTS)
    ]


def of_runs() -> list[Metric]:
    """Metrics with a number in a run's report, including those of its output weights."""
    return [metric for metric in metrics.catalogue().values() if metric.in_runs]


def headline() -> list[Metric]:
    """The measures shown if space is limited."""
    return [metric for metric in of_runs() if metric.headline]


def comparing() -> Metric:
    """The measure for comparing methods: on all layers' tokens, independent of the method's effect on the head."""
    return next((metric for metric in headline() if home(metric) == "layers"), headline()[0])


def acted_on(method: str) -> list[Metric]:
    """The measures that show what a method changes; empty for the baseline and for methods that declare none."""
    method_class = methods.find(method)
    if method_class is None:
        return []
    reported = {metric.slug: metric for metric in of_runs()}
    parts = method_class.part_classes if issubclass(method_class, Composed) else (method_class,)
    slugs = [part.acts_on or next((slug for slug in part.effects if slug in reported), "") for part in parts]
    return [reported[slug] for slug in slugs if slug in reported]


def default_for(compared: Iterable[str]) -> Metric:
    """The default measure for runs of these methods: the measure they all act on, else `comparing`."""
    measures_by_slug = {metric.slug: metric for method in set(compared) for metric in acted_on(method)}
    return next(iter(measures_by_slug.values())) if len(measures_by_slug) == 1 else comparing()


def towards_isotropy(metric: Metric) -> int:
    """1 if a more isotropic cloud has a larger value, −1 if it has a smaller value, else 0."""
    if metric.at_isotropy.value is None or metric.gives == "per pair of dimensions":
        return 0
    n, d = 1000, 10
    isotropic = metric.at_isotropy.value(n, d)
    low, high = (end and end(n, d) for end in (metric.range.low, metric.range.high))
    if low is not None and isotropic == low:
        return -1
    return int(isotropic == high or (high is None and low is not None))


def home(metric: Metric) -> str:
    """The cloud on which a run reports the metric: `head`, `layers` or `output` (`isoviz.metrics.record.Measurement.home`)."""
    return "head" if "rows" in metric.kinds else "layers" if "tokens" in metric.kinds else "output"


def cloud(metric: Metric) -> str:
    """The measure's cloud as text, with its setting: `all layers' tokens, ζ = 0.2`."""
    zeta = f", ζ = {REPORTED_ZETA:g}" if "zeta" in metric.inputs else ""
    return CLOUDS[home(metric)] + zeta


def with_cloud(metric: Metric) -> str:
    """`IsoScore* (all layers' tokens, ζ = 0.2)`: names the cloud, to distinguish the scores in one figure."""
    return f"{metric.number_title} ({cloud(metric)})"


def help_text(metric: Metric) -> str:
    """Help text of a column of runs."""
    return f"{metric.number_title}, {cloud(metric)}. {metric.tooltip}"


def is_score(metric: Metric) -> bool:
    """Whether an isotropic cloud of any size has the value 1: such metrics share an axis."""
    value = metric.at_isotropy.value
    return metric.gives == "number" and value is not None and value(1000, 10) == value(5000, 50) == 1


def live() -> list[dict[str, Any]]:
    """Facts on each metric for the live figures: `cloud` is its name in events, `score` as in `is_score`."""
    return [
        {
            "slug": metric.slug,
            "title": metric.number_title,
            "cloud": home(metric),
            "cloudTitle": cloud(metric),
            "axis": metric.axis,
            "decimals": metric.decimals,
            "score": is_score(metric),
        }
        for metric in of_runs()
    ]
