"""Chains as text: every transform there and back, and what a bad address is told."""

from __future__ import annotations

import pytest

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.whatif import chains
from isoviz.whatif.chains import MOST_STEPS
from isoviz.whatif.fine_tunes import WITHOUT, of_chain
from tests.whatif.test_engine import LONGER, PAIRS, SINGLE


@pytest.mark.parametrize("text", ["none", *SINGLE, *PAIRS[:20], *LONGER, "isolayer:alpha=0.3,isotropy=full"])
def test_there_and_back(text):
    assert chains.read(chains.write(chains.read(text))) == chains.read(text)


def test_only_what_is_changed_is_written():
    assert chains.write((chains.step("isobn"), chains.step("zca", strength=0.25))) == "isobn~zca:strength=0.25"
    assert chains.write((chains.step("isobn", beta=1.0, eps=None),)) == "isobn:beta=1"
    assert chains.step("all_but_the_top", remove=2, literal=True).text == "all_but_the_top:remove=2,literal=true"
    assert chains.step("zca", strength=0.1 + 0.2).text == "zca:strength=0.30000000000000004"
    assert chains.write(()) == "none" and chains.read("") == ()


@pytest.mark.parametrize(
    "text, reason",
    [
        ("zcaa", "unknown transform 'zcaa'; did you mean 'zca'"),
        ("zca:strenght=1", "unknown parameter of 'zca' 'strenght'; did you mean 'strength'"),
        ("zca:strength=7", "zca: strength: .*less than or equal to 1 .*got '7'"),
        ("zca:strength=nan", "zca: strength"),
        ("zca:strength", "'strength' in 'zca:strength' is no parameter=value"),
        ("zca:strength=1,strength=0", "'strength' is given twice"),
        ("isolayer:depth=3", "unknown parameter of 'isolayer' 'depth'"),
        ("<script>", "'<script>' is no step"),
        ("zca~", "'' is no step"),
        ("~".join(["zca"] * (MOST_STEPS + 1)), f"at most {MOST_STEPS} steps, got {MOST_STEPS + 1}"),
        ("z" * 2000, "at most 1000 characters, got 2000"),
    ],
)
def test_what_is_no_chain(text, reason):
    with pytest.raises(InputError, match=reason) as caught:
        chains.read(text)
    assert caught.value.field == "chain"


def test_every_step_explains_itself_and_makes_its_transform():
    assert set(chains.slugs()) == {*posthoc.catalogue(), "isolayer"}
    for slug in chains.slugs():
        about = chains.about(slug)
        assert about.summary and about.equation and about.paper and about.traps
        assert set(chains.parameters(slug)) <= set(chains.params_of(slug).model_fields)
    assert repr(chains.step("isobn", beta=2).make()) == "isobn(beta=2.0, eps=None, form='paper')"


def test_which_steps_can_be_fine_tuned():
    found, without = of_chain(chains.read("zca~isobn:beta=1.5,form=code~batch_norm~isolayer:alpha=0.2~rotation"))
    assert [(tune.method, tune.step.slug) for tune in found] == [
        ("isobn", "isobn"),
        ("batchnorm", "batch_norm"),
        ("isolayer", "isolayer"),
    ]
    assert found[0].params == {"beta": 1.5, "eps": 1e-3, "momentum": 0.05, "form": "code"}
    assert found[2].params["alpha"] == 0.2 and found[2].params["variant"] == "layer"
    assert [step.slug for step in without] == ["zca", "rotation"]


def test_every_step_becomes_a_run_or_says_why_not():
    for slug in chains.slugs():
        found, without = of_chain((chains.step(slug),))
        assert len(found) + len(without) == 1 and bool(without) == (slug in WITHOUT)
