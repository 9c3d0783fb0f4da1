"""Fields bound to the address keep their position in the page's tree, whatever appears around them.

The browser may stop writing a moved field to the address: see `dashboard.shared.stable`.
"""

from __future__ import annotations

from dashboard.train.form import OWN_TITLE
from isoviz.exploring import measuring, results
from isoviz.exploring.request import ViewRequest
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import address, key_for, places


def moved(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> list[str]:
    return [name for name in before if name in after and before[name] != after[name]]


def test_explore_from_the_first_pictures_to_the_last_numbers(
    open_page: OpenPage,
    explored: tuple[ViewRequest, dict, dict],  # type: ignore[type-arg]
) -> None:
    request, facts, arrays = explored
    before = places(open_page("explore", **address(request)))
    early = {**facts, "output": {"reason": "later"}, "pending": measuring.pending(), "layers": None}
    early["shrinkage"] = {"reason": "later"}
    key = key_for(request)
    results.STORE.publish(key, early, arrays)
    first = places(open_page("explore", **address(request)))
    results.STORE.publish(key, facts, {})
    last = places(open_page("explore", **address(request)))
    assert {"explore_pooling", "explore_layer", "explore_measure", "explore_own", "explore_ev_axis"} < set(first)
    assert set(before) < set(first) and set(first) == set(last)
    assert moved(before, first) == moved(first, last) == []


def test_train_with_any_selection(open_page: OpenPage) -> None:
    query: dict[str, str | list[str]] = {"train_tasks": ["glue/cola"]}
    before = places(open_page("train", **query))
    assert {"train_models", "train_tasks", "train_methods", "train_seeds", "train_data.glue/cola"} <= set(before)
    changes: tuple[dict[str, str | list[str]], ...] = (
        {"train_tasks": ["demo/acceptability", "glue/cola", OWN_TITLE]},
        {"train_tasks": ""},
        {"train_models": ["nonsense/of nothing"]},
        {"train_methods": ["IsoBN"]},
        {"train_methods": ""},
        {"train_seeds": "many"},
    )
    for changed in changes:
        after = places(open_page("train", **{**query, **changed}))
        assert {"train_models", "train_tasks", "train_methods", "train_seeds"} <= set(after)
        assert moved(before, after) == [], changed
