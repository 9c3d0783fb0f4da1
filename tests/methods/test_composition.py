"""Several methods in one run: which are compatible, and that each works as it does alone."""

from __future__ import annotations

import itertools

import pytest
import torch

from isoviz import methods
from isoviz.errors import InputError
from isoviz.methods import composition
from isoviz.runs import planning
from tests.methods.test_conformance import built, sentences

SHORT = {"isolayer.layer_epochs": 4, "isolayer.layer_batch": 16}
every_pair = pytest.mark.parametrize("slug", list(methods.combinations()))


def made(slug: str, **params: object) -> methods.composition.Method:
    kind = methods.get(slug)
    short = {name: value for name, value in SHORT.items() if name in kind.Params.model_fields}
    return kind(kind.Params(**methods.check_params(slug, short | params)))


def test_each_pair_is_compatible_or_says_why_not():
    singles = [kind for slug, kind in methods.catalogue().items() if slug != "baseline"]
    refused = 0
    for one, other in itertools.combinations(singles, 2):
        both_change = all(composition.changes_input(kind) for kind in (one, other))
        same_target = {one.slug, other.slug} == {"spectrum_pol", "spectrum_exp"}
        slug = f"{one.slug}+{other.slug}"
        if both_change or same_target:
            refused += 1
            with pytest.raises(InputError, match="classifier reads" if both_change else "different targets"):
                methods.get(slug)
        else:
            assert slug in methods.combinations()
    assert refused == 7  # four that change the input make six pairs, and the two spectra


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("baseline+istar", "changes nothing"),
        ("istar+istar", "different methods"),
        ("isobn+", "unknown method ''"),
        ("isobn+istr", "did you mean 'istar'"),
        ("isobn+istar+flow", "IsoBN"),
    ],
)
def test_incompatible_methods(slug, message):
    with pytest.raises(InputError, match=message) as caught:
        methods.get(slug)
    assert caught.value.field == "method"


def test_order_does_not_matter_and_more_than_two_are_allowed():
    assert methods.get("istar+isobn") is methods.get("isobn+istar")
    assert methods.get("istar+isobn").title == "IsoBN + I-STAR"
    assert methods.get("istar + cosreg + isobn").slug == "cosreg+isobn+istar"


@every_pair
def test_each_part_does_what_it_does_alone(tiny_models, slug):
    """On the same weights and batch: the terms of the loss are the parts' own, the logits those of the part that changes them."""
    parts = methods.get(slug).part_classes
    batch = sentences()
    together = built(tiny_models, made(slug)).train()
    combined = together(**batch, penalise=True)
    alone = {part.slug: built(tiny_models, made_single(part.slug)).train()(**batch, penalise=True) for part in parts}
    expected = {name: term for outputs in alone.values() for name, term in outputs.terms.items() if name != "task"}
    assert {name for name in combined.terms if name != "task"} == set(expected)
    for name, term in expected.items():
        torch.testing.assert_close(combined.terms[name], term, rtol=1e-5, atol=1e-6)
    changing = [part.slug for part in parts if composition.changes_input(part)] or ["baseline"]
    lone = alone.get(changing[0]) or built(tiny_models, made_single("baseline")).train()(**batch, penalise=True)
    torch.testing.assert_close(combined.logits, lone.logits, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(combined.loss, combined.terms["task"] + sum(expected.values()), rtol=1e-5, atol=1e-6)
    combined.loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in together.parameters())


def made_single(slug: str) -> methods.composition.Method:
    kind = methods.get(slug)
    return kind(kind.Params())


def test_a_plan_keeps_one_name_and_its_command_starts_the_same_run():
    choices = [("istar+isobn", {"istar.lam": [1.0, -1.0], "isobn.beta": 1.0})]
    configs = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], choices, [0], epochs=1)
    assert [config.method for config in configs] == ["isobn+istar"] * 2
    line = planning.command(configs)
    assert "--method isobn+istar --set isobn.beta=1.0 --grid istar.lam=1.0,-1.0" in line
