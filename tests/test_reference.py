"""The words and costs that the Methods page and the docs are written from."""

from __future__ import annotations

import pytest

from isoviz import methods, metrics, posthoc, reference

ITEMS = [*methods.catalogue().values(), *metrics.catalogue().values(), *posthoc.catalogue().values()]


@pytest.mark.parametrize("item", ITEMS, ids=[item.slug for item in ITEMS])
def test_every_item_has_a_measured_cost_and_a_source(item: object) -> None:
    assert reference.cost(item).endswith(".")  # type: ignore[arg-type]
    assert reference.home_package(item) == "isoviz"  # type: ignore[arg-type]
    assert item is methods.get("baseline") or reference.bibtex_of(item).startswith("@")  # type: ignore[arg-type]


@pytest.mark.parametrize("slug", [slug for slug in methods.catalogue() if slug != "baseline"])
def test_every_method_says_what_it_does_and_what_to_watch_for(slug: str) -> None:
    method = methods.get(slug)
    assert method.traps and all(trap.endswith(".") for trap in method.traps)
    assert bool(reference.direction(method)) == bool(method.effects)


def test_the_record_holds_ratios() -> None:
    record = reference.costs()
    assert len(record["methods"]["baseline"]) == 2
    assert all(ratios["step"] == 1 for ratios in record["methods"]["baseline"].values())
    assert 0.5 < record["measures"]["isoscore"] < 2
