"""Every public name resolves."""

from __future__ import annotations

import pkgutil

import pytest

from isoviz import metrics


def test_every_name_loads_and_hides_no_module():
    functions = {metric.function.__name__ for metric in metrics.catalogue().values()}
    names = {*functions, *metrics.MODULE_OF}
    for name in names:
        assert callable(getattr(metrics, name)), name
        assert name in dir(metrics)
    assert not names & {info.name for info in pkgutil.iter_modules(metrics.__path__)}
    with pytest.raises(AttributeError, match="no attribute 'isoscor'"):
        metrics.isoscor  # noqa: B018
