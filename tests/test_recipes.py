"""The papers' recipes: real settings, on the command line and in the form."""

from __future__ import annotations

import pytest

from isoviz.__main__ import build_parser
from isoviz.commands.options import request_of
from isoviz.commands.train import plan
from isoviz.config import RunConfig
from isoviz.errors import InputError
from isoviz.recipes import RECIPES, get
from isoviz.runs import planning


@pytest.mark.parametrize("slug", RECIPES)
def test_a_recipe_is_a_valid_configuration(slug):
    recipe = get(slug)
    (config,) = planning.expand(["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], **recipe.settings)
    for name, value in recipe.settings.items():
        expected = "accuracy:3" if (name, value) == ("early_stopping", "primary:3") else value
        assert getattr(config, name) == expected
    assert recipe.notes and recipe.seeds >= 3


def test_an_unknown_recipe_names_the_allowed_ones():
    with pytest.raises(InputError, match="did you mean 'isobn'"):
        get("isbn")


def test_the_command_line_wins_over_the_recipe():
    options = build_parser().parse_args(["train", "--recipe", "isobn", "--epochs", "2"])
    (config,) = plan(request_of(options))
    assert (config.epochs, config.learning_rate, config.weight_decay) == (2, 2e-5, 0.0)
    assert config.batching == "shuffled"


def test_primary_is_the_tasks_own_metric():
    configs = planning.expand(
        ["demo/tiny-bert"], ["demo/acceptability"], [("baseline", {})], [0], early_stopping="primary:2"
    )
    assert configs[0].early_stopping == "accuracy:2"
    assert RunConfig.model_fields["early_stopping"].default is None
