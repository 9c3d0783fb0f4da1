"""How the screens name the catalogue's metrics. A metric added to the catalogue appears on every screen without a change here.

No Streamlit here. Everything is a function, because a catalogue may grow while the app runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from isoviz import methods, metrics
from isoviz.methods.composition import Composed
from isoviz.metrics.protocol import Metric
from isoviz.metrics.scores import REPORTED_ZETA

CLOUDS = {"head": "classifier input", "layers": "all layers' tokens", "output": "output weights"}
"""Display names of a run's clouds, beside a number measured on them."""


def of_clouds() -> list[Metric]:
    """Metrics of which the record of a cloud of points holds a number, in the catalogue's order."""
    return [metric for metric in of_runs() if metric.kinds & {"rows", "tokens"}]


def of_runs() -> list[Metric]:
    """Metrics of which a run reports a number, those of its output weights included."""
    return [
        metric for metric in metrics.catalogue().values() if metric.estimate is not None and metric.gives != "curve"
    ]


def headline() -> list[Metric]:
    """The measures shown where space is short."""
    return [metric for metric in of_runs() if metric.headline]


def comparing() -> Metric:
    """The one by which methods are compared: of all layers' tokens, whatever the method does to the head."""
    return next((metric for metric in headline() if home(metric) == "layers"), headline()[0])


def acted_on(method: str) -> list[Metric]:
    """The measures that show what a method changes; empty for the baseline and for methods that declare none."""
    method_class = methods.find(method)
    if method_class is None:
        return []
    known = {metric.slug: metric for metric in of_runs()}
    parts = method_class.part_classes if issubclass(method_class, Composed) else (method_class,)
    slugs = [part.acts_on or next((slug for slug in part.effects if slug in known), "") for part in parts]
    return [known[slug] for slug in slugs if slug in known]


def default_for(compared: Iterable[str]) -> Metric:
    """The default measure for runs of these methods: the one they all act on, else `comparing`."""
    measures_by_slug = {metric.slug: metric for method in set(compared) for metric in acted_on(method)}
    return next(iter(measures_by_slug.values())) if len(measures_by_slug) == 1 else comparing()


def towards_isotropy(metric: Metric) -> int:
    """1 where a more isotropic cloud has a larger value, −1 where it has a smaller one, 0 where neither holds."""
    if metric.at_isotropy.value is None or metric.gives == "per pair of dimensions":
        return 0
    n, d = 1000, 10
    isotropic = metric.at_isotropy.value(n, d)
    low, high = (end and end(n, d) for end in (metric.range.low, metric.range.high))
    if low is not None and isotropic == low:
        return -1
    return int(isotropic == high or (high is None and low is not None))


def home(metric: Metric) -> str:
    """Of which cloud a run reports it: `head`, `layers` or `output` (`isoviz.metrics.record.Measurement.home`)."""
    return "head" if "rows" in metric.kinds else "layers" if "tokens" in metric.kinds else "output"


def cloud(metric: Metric) -> str:
    """The measure's cloud as text, with its setting: `all layers' tokens, ζ = 0.2`."""
    zeta = f", ζ = {REPORTED_ZETA:g}" if "zeta" in metric.inputs else ""
    return CLOUDS[home(metric)] + zeta


def with_cloud(metric: Metric) -> str:
    """`IsoScore* (all layers' tokens, ζ = 0.2)`: names the cloud, to distinguish the scores in one figure."""
    return f"{metric.number_title} ({cloud(metric)})"


def help_text(metric: Metric) -> str:
    """For the heading of a column of runs."""
    return f"{metric.number_title}, {cloud(metric)}. {metric.tooltip}"


def is_score(metric: Metric) -> bool:
    """Whether an isotropic cloud has exactly 1, whatever its size: such metrics share an axis."""
    value = metric.at_isotropy.value
    return metric.gives == "number" and value is not None and value(1000, 10) == value(5000, 50) == 1


def live() -> list[dict[str, Any]]:
    """What the live figures need of each: `cloud` is the name under which their events hold it, `score` as in `is_score`."""
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
