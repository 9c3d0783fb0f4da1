"""Addresses of every page, with every key that one knows and values that it does not expect."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dashboard.shared import resources
from isoviz import methods, tasks
from isoviz.config import RunConfig
from isoviz.exploring import measuring
from isoviz.exploring.request import ViewRequest
from isoviz.jobs import queue
from isoviz.jobs.queue import JobState
from isoviz.runs.store import Store
from isoviz.tasks.protocol import OwnTask
from isoviz.whatif import chains
from tests.dashboard.made_up import config, fail, finish
from tests.dashboard.reading import ROWS, address, keep, packages_scanned_once
from tests.fuzzing import nasty
from tests.tiny import TinyModels
from tests.whatif.trained import train

ROOT = Path(__file__).resolve().parents[2]
Address = tuple[str, Mapping[str, str]]
"""A page's name, and the query parameters."""

PAGES = ("home", "explore", "train", "live", "results", "tradeoffs", "whatif", "ruler", "compare", "run")
_EXPLORE = (
    "model", "task", "split", "rows", "views", "measure", "layer", "pooling", "map", "size", "neighbours", "min_dist", "umap_metric",
    "colour", "axes", "point", "lasso", "points", "method", "components", "search", "reference", "k", "order", "where", "words",
)  # fmt: skip
_OF_SETS = ("set", "layer", "either", "model")
_FILTERS = ("group", "model", "task", "method", "status", "isotropy", "metric", "parameter")


@dataclass(frozen=True)
class Known:
    """What a store holds that addresses may name.

    Attributes:
        runs: ids.
        trained: a run that was really trained; What-if has its embeddings.
        view: the address of a view of Explore that is there.
    """

    runs: tuple[str, ...]
    trained: str
    view: Mapping[str, str]


def fill(home: Path) -> Known:
    """Put into the home of this process (`ISOVIZ_HOME`): runs that finished, diverged, failed or wait, with strange names."""
    models = TinyModels(home / "models")
    trained = train(home, models)
    request = ViewRequest(str(models("bert")), "glue/cola", str(home / "cola"), max_rows=ROWS)
    keep((request, *measuring.compute(request, lambda done, total, text: None)))
    store = Store(home)
    made = [
        finish(store, config("istar", seed, {"lam": lam}), 0.7 + seed / 100, 0.1 + lam / 50, group="sweep")
        for lam in (-1.0, 1.0)
        for seed in (0, 1)
    ]
    made += [
        finish(store, config(), 0.6, None),
        finish(store, config("isobn"), 0.5, 0.3, collapsed="predicts one class"),
    ]
    made += [fail(store, config("istar")), fail(store, config("istar"), diverge=True)]
    made += store.create([config(seed=5)], name="<b>*name*</b> $x$ [a](b)")
    return Known((trained, *made), trained, address(request))


def addresses(known: Known, folder: Path) -> st.SearchStrategy[Address]:
    """Addresses over what a store holds and a folder of files (see `files.fill`)."""
    paths = nasty.near(*(str(path) for path in sorted(folder.iterdir())))
    model = nasty.near("demo/tiny-bert", "demo/tiny-bart", f"run:{known.trained}", str(folder / "model"))
    slug = nasty.near(*tasks.catalogue(), "own")
    fields: dict[str, dict[str, st.SearchStrategy[str]]] = {page: {} for page in PAGES}
    for number in ("", "2", "3"):
        prefix = f"explore{number}_"
        fields["explore"] |= {prefix + name: nasty.near("1", "2", "mean", "PCA", "3-D", "own") for name in _EXPLORE}
        fields["explore"] |= {prefix + "model": model, prefix + "task": slug}
        for one in tasks.catalogue():
            fields["explore"] |= {
                f"{prefix}data.{one}": paths,
                f"{prefix}from.{one}": nasty.near("Upload", "Hugging Face hub"),
                f"{prefix}direction.{one}": nasty.near("en-ro", "ro-en"),
            }
    train = fields["train"]
    train |= {
        "preset": nasty.near("demo", "isobn"),
        "train_models": model,
        "train_tasks": slug,
        "train_seeds": nasty.near("0 1", "0-4"),
    }
    train |= {"train_methods": nasty.near(*methods.catalogue(), *methods.combinations()), "train_data.own": paths}
    train |= {f"train_{name}": nasty.near("1", "2", "0.5", "linear", "bf16") for name in RunConfig.model_fields}
    train |= {f"train_own.{name}": nasty.near("text", "label", "1") for name in OwnTask.model_fields}
    for one in methods.catalogue():
        train |= {
            f"train_{one}.{name}": nasty.near("1", "0.5", "-1, 0, 1") for name in methods.get(one).Params.model_fields
        }
    for one in (*tasks.catalogue(), "own"):
        train |= {f"train_from.{one}": nasty.near("Upload", "Hugging Face hub"), f"train_data.{one}": paths}
        train |= {f"train_direction.{one}": nasty.near("en-ro")}
    run = nasty.near(*known.runs, known.trained)
    for page in ("results", "tradeoffs"):
        fields[page] |= {
            f"{page}_{name}": nasty.near("all", "sweep", "istar", "finished", "lam", "IsoScore", "accuracy")
            for name in _FILTERS
        }
    fields["live"] |= {"run": run, "group": nasty.near("sweep"), "overlay": nasty.near("true"), "id": run}
    fields["run"] |= {"id": run, "run": run, "overlay": nasty.near("true")}
    step = st.tuples(nasty.near(*chains.catalogue()), nasty.near("strength=0.5", "remove=2", "beta=1")).map(":".join)
    chain = st.one_of(st.lists(step, max_size=9).map("~".join), nasty.anything)
    fields["whatif"] |= {
        "run": run,
        "cloud": nasty.near("head", "pooled"),
        "chain": chain,
        "whatif_run": run,
        "whatif_add": nasty.anything,
    }
    fields["compare"] |= {
        f"compare_{name}": nasty.near("Your texts", "Your vectors", "Bundled search", "0.5", "demo/tiny-bert", "0" * 32)
        for name in ("from", "margin", "models", "texts", "vectors", "by", "title")
    }
    fields["ruler"] |= {
        f"ruler_{name}": nasty.near("Your own vectors or texts", "0.62", "90", "not known", "true", "A cat sat.")
        for name in (*_OF_SETS, "cosine", "share", "precision", "known", "from", "first", "second")
    }
    fields["home"] |= {"preset": nasty.anything, "run": run}
    bases = {"explore": known.view, "whatif": {"run": known.trained}}

    def of_page(page: str) -> st.SearchStrategy[Address]:
        bare = _query(fields[page])
        based = bare.map(lambda query: {**bases.get(page, {}), **query})
        return st.tuples(st.just(page), st.one_of(bare, based, based))

    return st.sampled_from(PAGES).flatmap(of_page)


def _query(known: Mapping[str, st.SearchStrategy[str]]) -> st.SearchStrategy[dict[str, str]]:
    pairs = st.sampled_from(sorted(known)).flatmap(lambda name: st.tuples(st.just(name), known[name]))
    strange = st.tuples(nasty.anything, nasty.anything)
    drawn = st.lists(st.one_of(pairs, pairs, pairs, pairs, pairs, pairs, pairs, pairs, strange), min_size=1, max_size=5)
    # what cannot be in a browser's address: it is decoded as UTF-8
    return drawn.map(
        lambda all_: {name: value.encode("utf-8", "replace").decode() for name, value in all_ if name.isprintable()}
    )


@contextlib.contextmanager
def without_jobs() -> Iterator[None]:
    """No process is started: a page shows only stored results."""
    environment = patch.dict(os.environ, {"ISOVIZ_RUNNER": "off", "HF_HUB_OFFLINE": "1"})
    with environment, patch.object(queue, "start", lambda *_, **__: JobState("none")), packages_scanned_once():
        yield
        resources.close()


def check(address: Address) -> str:
    """Open an address in a new session; the page's name.

    Raises:
        AssertionError: an exception box.
    """
    page, query = address
    app = AppTest.from_file(ROOT / "dashboard" / "app.py", default_timeout=180)
    app.switch_page(str(ROOT / "pages" / f"{page}.py"))
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception, f"{page}: {app.exception[0].message}\n{''.join(app.exception[0].stack_trace)}"
    return page
