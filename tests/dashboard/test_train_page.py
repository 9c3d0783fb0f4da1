"""The Train page: presets fill the form, bad input is reported beside its field, Launch creates all runs or none."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from isoviz import devices
from isoviz.runs.planning import PRESETS
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.reading import errors, texts


@pytest.fixture(autouse=True)
def _one_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    one_slot = devices.Devices((devices.Slot("cpu", "CPU, 2 cores", 0),), bf16=False, cores=2)
    monkeypatch.setattr(devices, "describe", lambda: one_slot)


def numbers(page: AppTest) -> dict[str, str]:
    return {metric.label: metric.value for metric in page.metric}


def launch(page: AppTest) -> AppTest:
    return page.button(key="launch").click().run()


def with_istar(open_page: OpenPage) -> AppTest:
    """The plain form with I-STAR instead of the preselected method."""
    page = open_page("train")
    return page.pills(key="train_methods").set_value(["baseline", "istar"]).run()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_preset_fills_the_form_and_launch_creates_its_runs(preset: object, open_page: OpenPage, store: Store) -> None:
    page = open_page("train", preset=preset.slug)  # type: ignore[attr-defined]
    plan = preset.plan  # type: ignore[attr-defined]
    assert page.text_input(key="train_seeds").value == " ".join(map(str, plan["seeds"]))
    assert page.number_input(key="train_epochs").value == plan["epochs"]
    page = launch(page)
    assert not page.exception
    rows = store.list(order="oldest")
    planned = {
        (slug, lam) for slug, params in plan["methods"] for lam in _values(params.get("lam", params.get("beta")))
    }
    created = {(row.config.method, row.config.params.get("lam", row.config.params.get("beta"))) for row in rows}
    assert created == planned
    assert {row.config.seed for row in rows} == set(plan["seeds"])
    assert len(rows) == len(planned) * len(plan["seeds"])
    assert {row.config.max_train for row in rows} == {plan["max_train"]}
    assert len({row.group for row in rows}) == 1 and rows[0].group
    assert {row.status for row in rows} == {"queued"}


def _values(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def test_lists_make_a_sweep_and_the_command_says_so(open_page: OpenPage) -> None:
    page = with_istar(open_page)
    page.text_input(key="train_istar.lam").set_value("−1, 0.5").run()
    page.text_input(key="train_seeds").set_value("0-2").run()
    assert numbers(page)["Runs"] == "9"
    assert "--grid lam=-1.0,0.5 --seeds 0 1 2" in page.code[0].value
    page.button(key="sweep_istar.zeta").click().run()  # the paper's range
    assert page.text_input(key="train_istar.zeta").value == "0.2, 0.4, 0.6, 0.8"
    assert numbers(page)["Runs"] == "27"


def test_two_methods_in_one_run(open_page: OpenPage, store: Store) -> None:
    page = open_page("train")
    page.multiselect(key="train_combinations").select("isobn+istar").run()
    page.text_input(key="train_isobn+istar.istar.lam").set_value("1, -1").run()
    assert errors(page) == [] and numbers(page)["Runs"] == "4"
    assert "--method isobn+istar --grid istar.lam=1.0,-1.0" in page.code[0].value
    page.text_input(key="train_isobn+istar.isobn.beta").set_value("9").run()
    assert any("at most 4" in error for error in errors(page))
    page.text_input(key="train_isobn+istar.isobn.beta").set_value("1").run()
    launch(page)
    combined = [row.config.params for row in store.list() if row.config.method == "isobn+istar"]
    assert {(params["isobn.beta"], params["istar.lam"]) for params in combined} == {(1.0, 1.0), (1.0, -1.0)}


def test_bad_values_are_reported_beside_the_field_and_nothing_starts(open_page: OpenPage, store: Store) -> None:
    page = with_istar(open_page)
    page.text_input(key="train_weight_decay").set_value("0.02").run()
    for key, value, message in (
        ("train_istar.lam", "200", "at least -100, at most 100"),
        ("train_seeds", "a", "allowed: whole numbers such as 0 1 2"),
        ("train_learning_rate", "-1", "above 0"),
    ):
        usual = page.text_input(key=key).value
        page.text_input(key=key).set_value(value).run()
        (error,) = errors(page)
        assert message in error and page.button(key="launch").disabled
        page.text_input(key=key).set_value(usual).run()
    page.text_input(key="train_early_stopping").set_value("bleu:2").run()
    beside, in_summary = errors(page)
    assert "no metric 'bleu' to watch (allowed: primary, accuracy, matthews)" in beside
    assert in_summary == f"Early stopping: {beside}" and page.button(key="launch").disabled
    page.text_input(key="train_early_stopping").set_value("").run()
    page.multiselect(key="train_tasks").set_value([]).run()
    page.multiselect(key="train_models").set_value([]).run()
    assert errors(page) == ["Choose at least one model.", "Choose at least one task."]
    assert page.button(key="launch").disabled
    assert page.text_input(key="train_weight_decay").value == "0.02"  # nothing entered before is lost
    assert store.list() == []


def test_paper_task_needs_a_folder(open_page: OpenPage, store: Store, cola: Path, tmp_path: Path) -> None:
    page = open_page("train")
    page.multiselect(key="train_tasks").set_value(["demo/sentiment", "glue/cola"]).run()
    assert errors(page) == [] and page.button(key="launch").disabled
    page.text_input(key="train_data.glue/cola").set_value(str(tmp_path / "nowhere")).run()
    assert "is not a folder that this machine can read" in errors(page)[0]
    page.text_input(key="train_data.glue/cola").set_value(str(cola)).run()
    assert errors(page) == []
    assert any("64 rows" in text.value for text in page.markdown)
    launch(page)
    folders = {(row.config.task, row.config.data) for row in store.list()}
    assert folders == {("demo/sentiment", None), ("glue/cola", str(cola))}


def test_upload_is_kept_and_its_folder_used(open_page: OpenPage, store: Store, cola: Path) -> None:
    page = open_page("train")
    page.multiselect(key="train_tasks").set_value(["glue/cola"]).run()
    page.segmented_control(key="train_from.glue/cola").set_value("Upload").run()
    good = (cola / "train.parquet").read_bytes()
    page.file_uploader(key="train_upload.glue/cola.train").set_value(
        ("bad.csv", b"text,label\na,1\n", "text/csv")
    ).run()
    page.file_uploader(key="train_upload.glue/cola.validation").set_value(
        ("v.parquet", good, "application/octet-stream")
    ).run()
    assert "lacks the column sentence" in errors(page)[0]
    page.file_uploader(key="train_upload.glue/cola.train").set_value(
        ("t.parquet", good, "application/octet-stream")
    ).run()
    assert errors(page) == []
    folder = Path(page.text_input(key="train_data.glue/cola").value)
    assert folder.parent == store.folder / "uploads" and (folder / "train.parquet").read_bytes() == good
    launch(page)
    assert {row.config.data for row in store.list()} == {str(folder)}


def test_what_the_seeds_would_show_is_said_before_they_run(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOVIZ_EXAMPLES", "on")  # whose runs give the spread
    page = open_page("train")
    assert "One seed shows no difference" in texts(page)
    page.text_input(key="train_seeds").set_value("0, 1, 2").run()
    assert "3 seeds each would show a difference of about 0." in texts(page) and "finished runs)" in texts(page)


def test_existing_runs_are_skipped_unless_requested(open_page: OpenPage, store: Store) -> None:
    page = open_page("train")  # a first visit can be launched as it is
    shown = numbers(page)
    assert errors(page) == [] and shown["Time"].startswith("about")
    assert (shown["Runs"], shown["Device"]) == ("2", "CPU, 2 cores")
    launch(page)
    existing = {row.id for row in store.list()}
    page = open_page("train")
    assert numbers(page)["Runs"] == "0" and page.button(key="launch").disabled
    assert any("These runs exist already" in caption.value for caption in page.caption)
    page.text_input(key="train_seeds").set_value("0 1").run()
    assert numbers(page)["Runs"] == "2"
    assert any("2 of these 4 runs exist already" in caption.value for caption in page.caption)
    page.toggle(key="train_again").set_value(True).run()
    assert numbers(page)["Runs"] == "4"
    page.toggle(key="train_again").set_value(False).run()
    launch(page)
    new = [row for row in store.list() if row.id not in existing]
    assert {(row.config.method, row.config.seed) for row in new} == {("baseline", 1), ("isobn", 1)}
    for row in new:
        store.request_stop(row.id)
    assert numbers(open_page("train"))["Runs"] == "0"  # those of seed 0 wait; the form is as on a first visit


def test_a_papers_recipe_fills_the_settings_and_leaves_the_rest(open_page: OpenPage, store: Store) -> None:
    page = open_page("train")
    page.button(key="recipe_isobn").click().run()
    assert not page.exception
    launch(page)
    for row in store.list():
        assert (row.config.epochs, row.config.learning_rate, row.config.early_stopping) == (10, 2e-5, "accuracy:3")
    assert {row.config.method for row in store.list()} == {"baseline", "isobn"}
