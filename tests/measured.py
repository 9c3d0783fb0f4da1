"""Records of clouds with given numbers, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence

from isoviz.metrics.record import CloudRecord, Measurement, Reading, WeightsRecord


def cloud(name: str, n: int, d: int, ev: Sequence[float] = (), **numbers: float | None) -> CloudRecord:
    """A cloud of the validation split; None is undefined."""
    readings = {
        slug: Reading(value=value, undefined="" if value is not None else "why") for slug, value in numbers.items()
    }
    if ev:
        readings |= {"ev": Reading(value=tuple(ev)), "ev_1": Reading(value=ev[0])}
    return CloudRecord(cloud=name, split="validation", n=n, d=d, readings=readings)


def measurement(
    head: CloudRecord, star: float | None, *others: CloudRecord, i1: float | None = None, i2: float | None = None
) -> Measurement:
    """The head and other clouds, IsoScore* of all layers' tokens, and the output layer."""
    layers = CloudRecord(
        cloud="layers",
        split="validation",
        n=20 * head.n,
        d=head.d,
        readings={"isoscore_star": Reading(value=star, settings={"zeta": 0.2}), **head.readings},
    )
    clouds = {one.cloud: one for one in (head, *others)}
    output = WeightsRecord(rows=2, d=head.d, norm=1.4, readings={"i1": Reading(value=i1), "i2": Reading(value=i2)})
    return Measurement(clouds={**clouds, "layers": layers}, output=output)
