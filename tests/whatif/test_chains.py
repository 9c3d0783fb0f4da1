"""Chains as text: a round trip of every transform, and errors for bad addresses."""

from __future__ import annotations

import pytest

from isoviz import posthoc
from isoviz.errors import InputError
from isoviz.posthoc.protocol import InTraining
from isoviz.whatif import chains
from isoviz.whatif.chains import MOST_STEPS
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
        ("zca:strength", "'strength' in 'zca:strength' is not parameter=value"),
        ("zca:strength=1,strength=0", "'strength' appears twice"),
        ("isolayer:depth=3", "unknown parameter of 'isolayer' 'depth'"),
        ("<script>", "'<script>' is not a step"),
        ("zca~", "'' is not a step"),
        ("~".join(["zca"] * (MOST_STEPS + 1)), f"at most {MOST_STEPS} steps, got {MOST_STEPS + 1}"),
        ("z" * 2000, "at most 1000 characters, got 2000"),
    ],
)
def test_invalid_chains(text, reason):
    with pytest.raises(InputError, match=reason) as caught:
        chains.read(text)
    assert caught.value.field == "chain"


def test_the_steps_are_the_transforms_and_isolayer():
    assert set(chains.catalogue()) == {*posthoc.catalogue(), "isolayer"}
    assert list(chains.catalogue()["isolayer"].Params.model_fields) == ["alpha", "isotropy"]
    assert repr(chains.step("isobn", beta=2).make()) == "isobn(beta=2.0, eps=None, form='paper')"


def test_each_step_names_its_training_method_or_says_why_there_is_none():
    steps = chains.read("zca~isobn:beta=1.5,form=code~batch_norm~isolayer:alpha=0.2~rotation")
    zca, isobn, batch_norm, isolayer, rotation = (step.in_training for step in steps)
    assert isobn.method == "isobn" and batch_norm.method == "batchnorm" and isolayer.method == "isolayer"
    assert isobn.params == {"beta": 1.5, "eps": 1e-3, "momentum": 0.05, "form": "code"}
    assert isolayer.params["alpha"] == 0.2 and isolayer.params["variant"] == "layer"
    assert "full covariance" in zca and "rotates with the cloud" in rotation
    for slug in chains.catalogue():
        answer = chains.step(slug).in_training
        assert isinstance(answer, InTraining) or (answer and not answer.endswith("."))
