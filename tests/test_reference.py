"""The words and costs that the Methods page and the docs are written from."""

from __future__ import annotations

import pytest

from isoviz import methods, metrics, posthoc, reference
from isoviz.methods.isolayer import IsoLayerParams
from isoviz.parameters import extra, sweep_title

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


PRINTED = {
    ("isobn", "beta"): (0.25, 0.5, 1.0),  # section 4.1: "chosen in the range of {0.25, 0.5, 1}"
    ("istar", "lam"): (-5.0, -3.0, -1.0, 1.0, 3.0, 5.0),  # section 4 and table 2
    ("istar", "zeta"): (0.2, 0.4, 0.6, 0.8),
    ("cosreg", "lam"): (-1.0, 1.0),  # I-STAR, figure 4
}
"""The ranges that the four papers print for a parameter of a method."""


def test_a_range_with_the_papers_name_is_printed_in_it() -> None:
    declared = {
        (slug, name): tuple(extra(field)["sweep"])
        for slug, method in methods.catalogue().items()
        for name, field in method.Params.model_fields.items()
        if extra(field).get("sweep") and sweep_title(field) == "Paper's range"
    }
    assert declared == PRINTED
    alpha = next(entry for entry in reference.parameters(IsoLayerParams) if entry.name == "alpha")
    assert (alpha.tried, alpha.tried_as) == ("0.25, 0.5, 0.75", "Values to try")


def test_the_record_holds_ratios() -> None:
    record = reference.costs()
    assert len(record["methods"]["baseline"]) == 2
    assert all(ratios["step"] == 1 for ratios in record["methods"]["baseline"].values())
    assert 0.5 < record["measures"]["isoscore"] < 2
