"""What-if: the empty store, a chain, bad links, the address that restores it, the way to a fine-tune; figures and words by hand."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.whatif import waiting
from dashboard.whatif.to_train import form_address
from isoviz import metrics
from isoviz.jobs import queue
from isoviz.jobs.kinds import JobKind, Progress
from isoviz.jobs.queue import JobState
from isoviz.operations.access.service import Service
from isoviz.runs.store import Store
from isoviz.tasks.protocol import OwnTask
from isoviz.training.weights import FILE, newest
from isoviz.whatif import chains, embeddings
from isoviz.whatif.embeddings import ENCODING
from isoviz.whatif.engine import CLOUDS, LAYER, instant_metrics, slow_metrics
from isoviz.whatif.request import STORE, request_for
from isoviz.whatif.scheduler import SCHEDULER
from tests.dashboard.conftest import PATIENCE, OpenPage
from tests.dashboard.made_up import config
from tests.dashboard.reading import drawn, errors, mounted, texts
from tests.jobs.here import fail_job, put_job, work_here
from tests.tiny import TinyModels
from tests.whatif.trained import train


@pytest.fixture(scope="module")
def original(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A home with a baseline run and an IsoBN run; both were read."""
    home = tmp_path_factory.mktemp("trained")
    return home, train(home, tiny_models), train(home, tiny_models, "isobn", epochs=1)


@pytest.fixture
def runs(original: tuple[Path, str, str], tmp_path: Path) -> tuple[str, str]:
    """The ids of both, in this test's own home; comes before `open_page`, which opens the store."""
    home, *ids = original
    shutil.copytree(home, tmp_path / "home")
    CLOUDS.clear()
    return ids[0], ids[1]


@pytest.fixture(autouse=True)
def _quiet() -> object:
    yield
    SCHEDULER.close()


def tiles(page: AppTest) -> dict[str, str]:
    """The measures after the chain, by title, from the table of all measures."""
    lines = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]* \|$", texts(page), re.MULTILINE)
    return {title: after.replace("−", "-") for title, _, after in lines[2:]}


def chain_of(page: AppTest) -> str:
    """The chain in the address, however it came there."""
    chain = page.query_params["chain"]
    return chain if isinstance(chain, str) else chain[0]


def button(page: AppTest, label: str) -> object:
    return next(element for element in page.button if element.label == label)


def test_numbers_figures_and_words_of_a_chain(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[0], chain="zca:strength=0.5")
    assert errors(page) == []
    stored = embeddings(runs[0])
    from isoviz.posthoc import zca

    transform = zca(strength=0.5).fit(stored.train)
    train, after = transform.transform(stored.train), transform.transform(stored.validation)
    shown = tiles(page)
    assert float(shown["IsoScore"]) == pytest.approx(metrics.isoscore(after), rel=6e-3)
    assert float(shown["Effective rank"]) == pytest.approx(metrics.effective_rank(after), rel=6e-3)
    words = texts(page)
    assert "isotropic" in words and "n = 48" in words
    table = page.dataframe[0].value.set_index("Read-out")
    assert list(table.index) == ["matthews, frozen head", "matthews, refitted head"]
    assert table.loc["matthews, frozen head", "After"] == pytest.approx(stored.frozen_metric(after))
    assert table.loc["matthews, refitted head", "After"] == pytest.approx(stored.refitted_metric(train, after))
    assert (table["95 % from"] <= table["to"]).all() and table["Verdict"].isin(
        ["No difference detectable", "The same", "Significantly higher", "Significantly lower"]
    ).all()
    specs = drawn(page)
    assert [len(spec["data"]) for spec in specs] == [3, 2, 2]  # EV_k; two maps, by label
    assert "Head cloud (input of the output layer), n = 48 validation rows, d = 16" in words
    assert "No training method corresponds to" in words and "ZCA whitening: it needs the full covariance" in words
    kinds = {element.proto.label for element in page.get("download_button")}
    files = {f"{table} ({kind})" for table in ("Numbers",) for kind in ("CSV", "Parquet")}
    assert kinds == {*files, "Save as one page"}
    row = Store(None).get(runs[0])
    source = f"{row.config.model} · glue/cola · validation · run {row.name} · head cloud · n = 48, d = 16 · "
    assert {data["name"].removeprefix(f"what-if-{row.id}-"): data["about"] for data in mounted(page)} == {
        "spectrum": source + "no transform and zca:strength=0.5",
        "map-before": source + "no transform",
        "map-after": source + "zca:strength=0.5",
    }
    page = open_page("whatif", run=runs[0], chain="none")
    assert {data["about"] for data in mounted(page)} == {source + "no transform"}


def test_a_chain_is_taken_home_as_a_matrix_and_as_a_model(
    runs: tuple[str, str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(_: Service, kind: JobKind, key: str, request: Any, inputs: Any) -> JobState:
        return work_here(kind, key, request, inputs)

    monkeypatch.setattr(Service, "start_job", work)
    page = open_page("whatif", run=runs[0], chain="zca:eps=0.01")
    button(page, "Prepare files").click().run()
    assert errors(page) == [] and "matthews, frozen head: " in texts(page)
    assert "Matrix (numpy)" in {element.proto.label for element in page.get("download_button")}
    button(page, "Build the model").click().run()
    assert errors(page) == []
    assert "Model (sentence-transformers)" in {element.proto.label for element in page.get("download_button")}

    page = open_page("whatif", run=runs[0], chain="mean_removal")
    button(page, "Prepare files").click().run()
    assert "is not affine" in errors(page)[0]
    assert "Add a transform to export it." in texts(open_page("whatif", run=runs[0], chain="none"))


def test_steps_are_added_moved_and_removed(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[0], chain="scale:factor=5")
    page.selectbox(key="whatif_add").set_value("isobn").run()
    assert chain_of(page) == "scale:factor=5~isobn"
    page.selectbox(key="whatif_add").set_value("all_but_the_top").run()
    assert errors(page) == []
    assert chain_of(page) == "scale:factor=5~isobn~all_but_the_top:remove=1"
    keys = [element.key for element in page.button if element.key and element.key.endswith("_step_earlier")]
    page.button(key=keys[2]).click().run()
    assert chain_of(page) == "scale:factor=5~all_but_the_top:remove=1~isobn"
    assert page.slider[1].value == 0.5  # IsoBN's β came along
    for key in keys:
        page.button(key=key.replace("earlier", "remove")).click().run()
    assert chain_of(page) == "none" and "No transform" in texts(page)
    changes = re.findall(r"^\| [^|]+ \| [^|]+ \| [^|]+ \| ([^|]*) \|$", texts(page), re.MULTILINE)[2:]
    assert changes and set(changes) <= {"±0", ""}


def test_a_bad_link_is_reported_beside_the_chain(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[0], chain="zca:strenght=1")
    (error,) = errors(page)
    assert error.startswith("The chain in this link is invalid. Unknown parameter of 'zca' 'strenght'")
    assert chain_of(page) == "zca:strenght=1"  # left as it is until something is changed
    page.slider[0].set_value(0.25).run()
    assert errors(page) == [] and chain_of(page) == "zca:strength=0.25"


def the_panel(run: object, key: str) -> None:
    """The panel without the page around it, as a move of a slider draws it."""
    import streamlit as st

    from dashboard.whatif import form, panel

    if "whatif_steps" in st.session_state:
        st.caption("the page is drawn anew")
        return
    form.follow_address()
    panel.draw(run, key, "head")  # type: ignore[arg-type]


def test_a_run_deleted_or_evicted_while_it_is_viewed(runs: tuple[str, str], store: Store) -> None:
    row = store.get(runs[0])
    key = request_for(row, store.folder_of(row.id)).key
    store.delete(row.id)
    panel = AppTest.from_function(the_panel, args=(row, key), default_timeout=PATIENCE).run()
    assert (
        errors(panel) == []
        and len(tiles(panel)) == len(instant_metrics()) + len(slow_metrics())
        and "Make it a run" in texts(panel)
    )
    shutil.rmtree(STORE.root / "results" / key)
    panel = AppTest.from_function(the_panel, args=(row, key), default_timeout=PATIENCE).run()
    assert errors(panel) == [] and "the page is drawn anew" in texts(panel)


def test_own_files_are_passed_on_to_the_train_page() -> None:
    own = OwnTask(
        text="words", label="mark", kind="classification", label_names=("yes", "no"), share=0.25, split_seed=3
    )
    run = config(task="own", own=own, data="own.csv", weight_decay=0.125, schedule="constant")
    filled = form_address(run, chains.step("batch_norm").in_training)  # type: ignore[arg-type]
    assert {name.removeprefix("train_own."): filled[name] for name in filled if name.startswith("train_own.")} == {
        "text": "words", "second": "(none)", "third": "(none)", "label": "mark", "kind": "class", "share": "0.25",
        "split_seed": "3", "label_names": "yes\nno",
    }  # fmt: skip
    settings = ("train_data.own", "train_weight_decay", "train_schedule")
    assert [filled[name] for name in settings] == ["own.csv", "0.125", "constant"]


def test_impossible_actions_on_a_run_are_explained(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[0], chain="pca_whitening:components=3")
    assert errors(page) == [] and page.dataframe[0].value["After"].isna()[0]
    assert "The frozen head cannot read these vectors" in texts(page)
    page = open_page("whatif", run=runs[0], chain="all_but_the_top:remove=16")
    assert errors(page) == [] and "The training rows no longer vary in any direction" in texts(page)
    assert "becomes less isotropic" not in texts(page)
    page = open_page("whatif", run=runs[0], chain="cluster_based:n_clusters=500")
    assert any("n_clusters must be at most 96" in error for error in errors(page)) and "pending" not in texts(page)
    page = open_page("whatif", run="nobody")
    assert errors(page) == ["Run not found: 'nobody'. It may have been deleted, or the link is incomplete."]
    (waiting,) = Store(None).create([config("isobn", 0, {})])
    assert "is queued; What-if needs a finished run" in errors(open_page("whatif", run=waiting))[0]


def test_a_layer_in_training_is_stopped_by_its_button_and_by_the_next_move(
    runs: tuple[str, str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[str] = []  # by a queue whose processes never end
    look = queue.look

    def looked(kind: JobKind, key: str) -> JobState:
        return JobState("running" if key in running else "none", key) if kind is LAYER else look(kind, key)

    def started(_: Service, kind: JobKind, key: str, *request: object, retry: bool = True) -> JobState:
        running.append(key)
        return looked(kind, key)

    monkeypatch.setattr(queue, "look", looked)
    monkeypatch.setattr(Service, "start_job", started)
    for name in ("stop_job", "release"):
        monkeypatch.setattr(Service, name, lambda _, kind, key: running.remove(key))
    page = open_page("whatif", run=runs[0], chain="isolayer:alpha=0.5")
    (first,) = running
    assert errors(page) == [] and page.get("progress")[0].proto.text.startswith("IsoLayer")

    button(page, "Stop").click().run()  # type: ignore[attr-defined]
    assert running == [] and "You stopped it" in texts(page)
    button(page, "Start again").click().run()  # type: ignore[attr-defined]
    assert running == [first]
    running.clear()  # another tab or visitor moved on
    page.run()
    assert running == [first] and "You stopped it" not in texts(page)

    page.slider[0].set_value(0.75).run()  # no one waits for the first one any more
    assert len(running) == 1 and running != [first]
    next(element for element in page.button if element.help == "IsoLayer: remove").click().run()
    assert running == []


def test_before_and_during_the_first_reading(
    runs: tuple[str, str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(STORE.root / "results")
    page = open_page("whatif", run=runs[0])
    assert "First, the run's embeddings" in texts(page) and button(page, "Compute the embeddings")
    store = Store(None)
    request = request_for(store.get(runs[0]), store.folder_of(runs[0]))
    put_job(ENCODING, request.key, "running", progress=Progress(420, 1000, "encoding train, 40 of 96 rows"))
    page = open_page("whatif", run=runs[0])
    assert errors(page) == [] and button(page, "Stop")
    assert "42 % · encoding train" in page.get("progress")[0].proto.text.replace("\\", "")
    fail_job(ENCODING, request.key, "data: the folder is gone", "data", "Bring it back.")
    assert errors(open_page("whatif", run=runs[0])) == ["The folder is gone. Bring it back."]


def test_a_run_that_diverged_is_reported_in_one_line(runs: tuple[str, str], open_page: OpenPage) -> None:
    from safetensors.numpy import load_file, save_file

    store = Store(None)
    row, folder = store.get(runs[0]), store.folder_of(runs[0])
    weights = newest(folder) / FILE  # type: ignore[operator]
    arrays = load_file(weights)
    arrays["network.classifier.weight"] *= np.nan
    save_file(arrays, weights)
    assert "Compute the embeddings" in [element.label for element in open_page("whatif", run=row.id).button]
    request = request_for(row, folder)
    assert work_here(ENCODING, request.key, request.as_json()).status == "failed"
    page = open_page("whatif", run=row.id)
    (message,) = errors(page)
    assert "its training diverged, so there is nothing to transform" in message and "lower learning rate" in message
    assert "\n" not in message and not page.code and "Compute again" not in [element.label for element in page.button]


def test_what_is_computed_for_a_page_knows_whether_it_is_open(
    runs: tuple[str, str], open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Callable[[], bool]] = []
    submit = SCHEDULER.submit
    monkeypatch.setattr(SCHEDULER, "submit", lambda *question, is_here: asked.append(is_here) or submit(*question))
    open_page("whatif", run=runs[0], chain="zca:strength=0.45")
    assert asked and all(is_here() for is_here in asked)
    monkeypatch.setattr(waiting, "session_is_open", lambda session: False)
    assert not any(is_here() for is_here in asked)


def test_both_clouds_of_a_run_whose_method_changes_the_vector(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[1], chain="none", cloud="pooled")
    assert errors(page) == []
    assert float(tiles(page)["IsoScore"]) == pytest.approx(
        metrics.isoscore(embeddings(runs[1], cloud="pooled").validation), rel=6e-3
    )
    shared = {name: value if isinstance(value, str) else value[0] for name, value in page.query_params.items()}
    assert shared == {"run": runs[1], "cloud": "pooled", "chain": "none"}  # the button copies the address


def test_a_step_becomes_a_fine_tune_on_the_train_page(runs: tuple[str, str], open_page: OpenPage) -> None:
    page = open_page("whatif", run=runs[0], chain="isobn:beta=1.5~rotation")
    assert button(page, "Fine-tune with IsoBN (β = 1.5)")
    assert "Random rotation: a head in training rotates with the cloud" in texts(page)
    tune = chains.step("isobn", beta=1.5, form="code").in_training
    row = Store(None).get(runs[0])
    filled = open_page("train", **form_address(row.config, tune))
    assert not filled.exception
    values = {found.key: found.value for found in [*filled.text_input, *filled.number_input, *filled.multiselect]}
    assert values["train_isobn.beta"] == "1.5" and values["train_isobn.eps"] == "0.001"
    assert values["train_models"] == [row.config.model] and values["train_tasks"] == ["glue/cola"]
    assert values["train_data.glue/cola"] == row.config.data
    assert values["train_epochs"] == 2 and values["train_learning_rate"] == "0.002" and values["train_batch_size"] == 16
    chosen = {pill.key: pill.value for pill in filled.pills}
    assert chosen["train_methods"] == ["baseline", "isobn"] and chosen["train_isobn.form"] == ["code"]
