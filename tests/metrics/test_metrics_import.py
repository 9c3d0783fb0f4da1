"""Importing the metrics is cheap, and every public name resolves."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from isoviz import metrics


@pytest.mark.parametrize(
    "code",
    [
        "from isoviz import metrics; metrics.catalogue()",
        "import numpy as np; from isoviz.metrics import describe; describe(np.random.rand(20, 5))",
        "import numpy as np; from isoviz import metrics; metrics.isoscore_star(np.random.rand(20, 5), np.eye(5), 0.1)",
    ],
)
def test_numpy_work_loads_neither_torch_nor_scipy(code):
    check = "import sys; print([m for m in ('torch', 'scipy', 'sklearn', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", f"{code}; {check}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_name_loads_and_hides_no_module():
    functions = {metric.function.__name__ for metric in metrics.catalogue().values()}
    names = {*functions, *metrics.MODULE_OF}
    for name in names:
        assert callable(getattr(metrics, name)), name
        assert name in dir(metrics)
    assert not names & {info.name for info in pkgutil.iter_modules(metrics.__path__)}
    with pytest.raises(AttributeError, match="no attribute 'isoscor'"):
        metrics.isoscor  # noqa: B018
