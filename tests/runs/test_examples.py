"""The bundled examples: their content, reading them beside a store, and failures to read them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from isoviz.config import RunConfig
from isoviz.demo import EXAMPLES
from isoviz.errors import AccessError
from isoviz.events import Started
from isoviz.methods import catalogue
from isoviz.operations.access.policy import UNRESTRICTED
from isoviz.operations.access.service import Service
from isoviz.operations.access.visitors import OPERATOR
from isoviz.runs import examples
from isoviz.runs.examples import DATABASE, METHODS, SWEEP, Examples, Library, is_example
from isoviz.runs.store import Store

LARGEST = 15_000_000


@pytest.fixture(scope="module")
def shipped() -> Examples:
    return Examples()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def config(**changes: object) -> RunConfig:
    return RunConfig.checked(**{"model": "demo/tiny-bert", "task": "demo/acceptability", **changes})


# ------------------------------------------------------------------------------------------------------ what ships


def test_the_examples_are_small_enough_to_ship():
    assert sum(path.stat().st_size for path in EXAMPLES.rglob("*") if path.is_file()) <= LARGEST


def test_every_shipped_run_names_the_versions_that_made_it(shipped):
    rows = shipped.list()
    assert len(rows) == shipped.about["runs"]
    for row in rows:
        started = shipped.newest_of_kind(row.id, Started)
        assert started is not None and row.result is not None, row.id
        assert is_example(row.id) and row.status == "finished" and row.group in shipped.experiments
        assert {"isoviz", "torch", "transformers"} <= set(started[1].versions)
        assert started[1].device and row.ended and row.ended > 1.7e9
        assert row.host is None and row.config.data is None


def test_nine_methods_on_two_tasks_with_three_seeds_and_a_sweep_ship(shipped):
    cells = {(row.config.method, row.config.task, row.config.seed) for row in shipped.list(group=METHODS)}
    recorded = {method for method, _, _ in cells}
    assert len(cells) == 9 * 2 * 3 and len(recorded) == 9 and recorded < set(catalogue())
    swept = [row.config.params for row in shipped.list(group=SWEEP) if row.config.method == "istar"]
    assert len({row["lam"] for row in swept}) >= 3 and len({row["zeta"] for row in swept}) >= 3


def test_what_if_reads_the_embeddings_of_an_example(shipped):
    from isoviz import whatif

    for run_id in shipped.about["embeddings"]:
        embeddings, result = whatif.embeddings(run_id), shipped.get(run_id).result
        assert (
            result is not None
            and embeddings.train.dtype == "float32"
            and len(embeddings.texts) == len(embeddings.labels)
        )
        assert embeddings.frozen_metric(embeddings.validation) == pytest.approx(result.metrics["accuracy"], abs=0.002)


# ------------------------------------------------------------------------------------------- beside your own store


def test_a_library_finds_runs_by_their_id_and_never_mixes_lists(shipped, store):
    (own,) = store.create([config()], group="mine")
    library, example = Library(store, shipped), shipped.featured()
    assert library.get(own).id == own and library.get(example.id).id == example.id
    assert library.folder_of(example.id).is_relative_to(EXAMPLES) and library.folder_of(own).is_relative_to(
        store.folder
    )
    assert [row.id for row in library.list()] == [own] and [row.id for row in library.summaries()] == [own]
    assert {row.group for row in library.list(group=METHODS)} == {METHODS}
    groups = list(dict.fromkeys(facet.group for facet in library.facets()))
    assert groups[:3] == ["mine", METHODS, SWEEP]
    assert library.counts() == store.counts()


def test_every_change_of_an_example_is_refused_in_one_line(shipped, store, monkeypatch):
    monkeypatch.setenv(examples.SWITCH, "on")
    service, row = Service(store, OPERATOR, UNRESTRICTED), shipped.featured()
    for change in (
        lambda: service.rename(row.id, "mine"),
        lambda: service.tag(row.id, ["mine"]),
        lambda: service.note(row.id, "mine"),
        lambda: service.delete(row.id),
        lambda: service.resume(row.id),
        lambda: service.stop(row.id),
    ):
        with pytest.raises(AccessError, match="example that ships with IsoViz"):
            change()
    assert str(service.refusal(row)).count("\n") == 0
    copy = service.run_again(row.id)
    assert not is_example(copy) and store.get(copy).config == row.config


# ------------------------------------------------------------------------------------------- where they cannot be read


def copied(target: Path) -> Path:
    target.mkdir(exist_ok=True)
    for name in (DATABASE, examples.ABOUT):
        shutil.copy(EXAMPLES / name, target / name)
    return target


def test_a_read_only_folder_suffices_and_no_files_are_left_behind(tmp_path):
    folder = copied(tmp_path / "shipped")
    folder.chmod(0o500)
    try:
        opened = Examples(folder)
        assert opened.list(limit=1) and opened.summaries(group=METHODS)
        assert sorted(os.listdir(folder)) == sorted([DATABASE, examples.ABOUT])
    finally:
        folder.chmod(0o700)
