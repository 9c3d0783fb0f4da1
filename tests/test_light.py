"""Catalogues, doors and plain numpy work load no heavy library."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from isoviz import metrics

BEYOND_THE_CORE = {"torch", "scipy", "sklearn", "pandas"}
TRAINING = {"torch", "transformers", "datasets", "streamlit", "plotly", "umap"}
POINTS = "import numpy as np; points = np.random.rand(20, 5)"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("from isoviz import metrics; metrics.catalogue()", BEYOND_THE_CORE),
        (f"{POINTS}; from isoviz.metrics import describe; describe(points)", BEYOND_THE_CORE),
        (f"{POINTS}; from isoviz.metrics import isoscore_star; isoscore_star(points, np.eye(5), 0.1)", BEYOND_THE_CORE),
        (f"{POINTS}; from isoviz import posthoc; posthoc.catalogue(); posthoc.zca().fit(points)", BEYOND_THE_CORE),
        ("import isoviz.pytest_plugin", {"numpy", "pydantic", "scipy", "torch"}),
        (
            "import isoviz; isoviz.Watch().step([[0.0, 1.0]] * 4); assert isoviz.watch.Watch is isoviz.Watch",
            {"torch", "scipy", "transformers", "lightning", "sentence_transformers"},
        ),
        ("from isoviz import methods, tasks; methods.catalogue(); tasks.catalogue()", TRAINING),
        (
            "from isoviz.tables import stores; stores.catalogue()",
            {"apsw", "chromadb", "duckdb", "pandas", "pyarrow", "torch"},
        ),
        ("from isoviz import studies; assert 'istar-figure-2' in studies.catalogue()", TRAINING | {"scipy"}),
        ("from isoviz.runs import planning, runner, store; store.Store()", TRAINING),
        (
            "from isoviz.models import sources, hub, views; sources.resolve('demo/tiny-bert'); hub.cached()",
            TRAINING,
        ),
    ],
)
def test_it_loads_nothing_heavy(code: str, heavy: set[str]) -> None:
    script = f"import sys; {code}; print({heavy!r} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_the_package_itself_needs_the_standard_library_only() -> None:
    script = (
        "import sys; before = {*sys.modules}; import isoviz;"
        "print({name.partition('.')[0] for name in {*sys.modules} - before} - sys.stdlib_module_names)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'isoviz'}"


WITHOUT_PROCESSES = """
import os, sys, threading, _thread
sys.modules["psutil"] = None
del os.fork, os.register_at_fork

def refused(*arguments, **options):
    raise RuntimeError("can't start new thread")

threading.Thread.start = _thread.start_new_thread = refused
import numpy as np, isoviz
from isoviz import metrics, notebook, plots, posthoc, vectors
from isoviz.readouts import ruler
points = np.random.default_rng(0).normal(size=(60, 5))
assert len(metrics.describe(points)) > 10 and metrics.isoscore(points) > 0.5
assert posthoc.zca().fit(points).transform(points).shape == (60, 5)
page = isoviz.show(points, labels=range(60), texts=map(str, range(60)))
assert "OwnVectors" in page.html and page._repr_html_().startswith("<iframe srcdoc=")
isoviz.ruler(points)
isoviz.baseline(points)
"""


def test_measures_transforms_and_the_page_need_no_processes_or_threads() -> None:
    """As in Pyodide, which has neither psutil nor fork nor threads."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", WITHOUT_PROCESSES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_package_lists_its_public_names_only() -> None:
    script = "import isoviz; names = dir(isoviz); [getattr(isoviz, name) for name in names]; print(*names)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    assert {"metrics", "plots", "train", "Store", "Watch", "ruler", "check", "show"} <= names
    assert not {"Any", "annotations", "import_module"} & names


def test_every_name_of_metrics_loads_and_hides_no_module() -> None:
    functions = {metric.function.__name__ for metric in metrics.catalogue().values()}
    names = {*functions, *metrics.MODULE_OF}
    for name in names:
        assert callable(getattr(metrics, name)), name
        assert name in dir(metrics)
    assert not names & {info.name for info in pkgutil.iter_modules(metrics.__path__)}
    with pytest.raises(AttributeError, match="no attribute 'isoscor'"):
        metrics.isoscor  # noqa: B018
