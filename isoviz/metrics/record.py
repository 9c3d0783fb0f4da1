"""Typed measurements: one reading per metric, for each cloud of points and each output matrix.

Training events, run results, Explore's views, `measure` and all tables use these records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

Curve: TypeAlias = tuple[float, ...]
PENDING = "still being computed"
"""The reason for a missing value that will follow later."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")


class Reading(_Record):
    """One metric on one cloud.

    Attributes:
        value: the number, or a curve's values; None if undefined.
        undefined: the reason, if it is undefined.
        interval: (low, high) at 95 %, if there is one.
        no_interval: why a requested interval is missing.
        points: number of points used, if not all.
        error: half-width of the 95 % interval of the sampling error, if part of the computation was sampled.
        note: a caveat on the value ("leaves out 3 zero vectors").
        p: the p value, if the metric is the statistic of a test.
        settings: the parameters used (ζ of IsoScore*).
    """

    value: float | Curve | None = None
    undefined: str = ""
    interval: tuple[float, float] | None = None
    no_interval: str = ""
    points: int | None = None
    error: float | None = None
    note: str = ""
    p: float | None = None
    settings: dict[str, float] = Field(default_factory=dict)

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if name == "value" or value not in (None, "", {})}


class _Measured(_Record):
    """Values of metrics by slug, from the readings that a subclass finds."""

    def reading(self, slug: str) -> Reading | None:
        """The reading of a metric; None if it was not measured here."""
        raise NotImplementedError

    def number(self, slug: str) -> float | None:
        """The value of a scalar metric; None if it is undefined or was not measured."""
        reading = self.reading(slug)
        return None if reading is None or isinstance(reading.value, tuple) else reading.value

    def curve(self, slug: str) -> Curve:
        """The values of a curve metric; empty if it is undefined or was not measured."""
        reading = self.reading(slug)
        return reading.value if reading is not None and isinstance(reading.value, tuple) else ()


class _Readings(_Measured):
    """Base of the records of clouds and weights."""

    readings: dict[str, Reading] = Field(default_factory=dict)

    def reading(self, slug: str) -> Reading | None:
        return self.readings.get(slug)

    def interval(self, slug: str) -> tuple[float, float] | None:
        """(low, high) of a metric at 95 %; None if there is no interval."""
        reading = self.readings.get(slug)
        return reading.interval if reading else None


class Dimensions(_Record):
    """Statistics of single dimensions.

    Attributes:
        sigma: (min, median, max) of the population standard deviations.
        outliers: rogue dimensions by mean activation, the most extreme first, at most 20.
        mean_norm: length of the mean vector.
        dead: dimensions that do not vary, at most 20.
    """

    sigma: tuple[float, float, float]
    outliers: tuple[int, ...]
    mean_norm: float
    dead: tuple[int, ...] = ()


class CloudRecord(_Readings):
    """One named cloud of points.

    Attributes:
        cloud: `head`, `pooled`, `layers`, `layer_k`, or a file's name.
        split: the split of the points' rows; empty for a file.
        drawn: how one point per row was chosen, if there was a choice.
        layer, pooling: for an encoder's cloud.
        n, d: points and dimensions.
        dimensions: None if not measured.
        notes: sentences on the cloud as a whole.
        truncated: number of truncated rows.
    """

    cloud: str
    split: str = ""
    drawn: str = ""
    layer: int | None = None
    pooling: str = ""
    n: int
    d: int
    dimensions: Dimensions | None = None
    notes: tuple[str, ...] = ()
    truncated: int = 0

    def with_readings(self, readings: Mapping[str, Reading]) -> CloudRecord:
        """A copy with more readings, in catalogue order."""
        from isoviz import metrics

        order = {slug: index for index, slug in enumerate(metrics.catalogue())}
        merged = {**self.readings, **readings}
        return self.model_copy(
            update={"readings": dict(sorted(merged.items(), key=lambda item: order.get(item[0], 1000)))}
        )

    def points_of(self, slug: str) -> int:
        """The number of points used for a metric."""
        reading = self.readings.get(slug)
        return self.n if reading is None or reading.points is None else reading.points


class WeightsRecord(_Readings):
    """The rows of an output matrix.

    Attributes:
        rows, d: its shape.
        norm: Frobenius norm, the main influence on I1 and I2.
    """

    rows: int
    d: int
    norm: float | None = None


class Measurement(_Measured):
    """All clouds of a run at one point in time, by name, and the output matrix.

    `head` and `pooled` have one point per row, `layers` all layers' tokens together, `layer_k` those of layer k (counted from
    the first that is measured). A metric's value is that of the cloud that represents the run for it (`headline_cloud`).
    """

    clouds: dict[str, CloudRecord] = Field(default_factory=dict)
    output: WeightsRecord | None = None

    def headline_cloud(self, slug: str) -> str:
        """The cloud that represents the run for a metric: `head` if it is measured there, else `layers`, else `output`."""
        for name in ("head", "layers"):
            if name in self.clouds and slug in self.clouds[name].readings:
                return name
        return "output" if self.output is not None and slug in self.output.readings else "head"

    def cloud(self, name: str) -> CloudRecord | None:
        """One cloud by name."""
        return self.clouds.get(name)

    def reading(self, slug: str) -> Reading | None:
        name = self.headline_cloud(slug)
        record = self.output if name == "output" else self.clouds.get(name)
        return record.reading(slug) if record else None

    def layers(self) -> list[CloudRecord]:
        """The clouds of single layers, in layer order."""
        names = sorted((name for name in self.clouds if name.startswith("layer_")), key=lambda name: int(name[6:]))
        return [self.clouds[name] for name in names]

    def by_layer(self, slug: str) -> list[float | None]:
        """A metric on each layer's tokens."""
        return [cloud.number(slug) for cloud in self.layers()]
