"""The page of one run: finished, running, failed, unknown; its content and its edits."""

from __future__ import annotations

from dataclasses import replace

from dashboard.run import sections as run_view
from isoviz.events import Weights
from isoviz.runs import planning
from isoviz.runs.execution import LOG
from isoviz.runs.store import Store
from tests.dashboard.conftest import OpenPage
from tests.dashboard.made_up import config, measured, result, started
from tests.dashboard.reading import texts
from tests.story import Story


def test_a_finished_run_tells_everything(store: Store, open_page: OpenPage) -> None:
    run = Story(store, method="isobn", params={"beta": 0.5}).complete()
    app = open_page("run", id=run.id)
    assert not app.exception
    assert app.title[0].value == "IsoBN on demo/acceptability, seed 0 \\(β \\= 0\\.5\\)"
    numbers, provenance, configuration = (frame.value for frame in app.dataframe)
    shown = dict(zip(numbers[""], numbers["value"], strict=True))
    assert shown["accuracy"] == f"{run.accuracy:.4g}"
    assert shown["Variance of the first direction"] == f"{run.ev[0]:.4g}"
    where = dict(zip(numbers[""], numbers["measured on"], strict=True))
    assert where["IsoScore"] == "head: n = 200, d = 48"
    assert where["accuracy"] == "validation: n = 500"
    assert "On the validation split, after epoch 4." in texts(app)
    assert where["IsoScore*"] == "layers: all layers' tokens, n = 4,000, d = 48, ζ = 0.2"
    known = dict(zip(provenance[""], provenance["value"], strict=True))
    assert known["Data fingerprint"] == "2f0c9a1b77d3e654"
    assert known["Version of torch"] == "2.13.0"
    assert dict(zip(configuration["field"], configuration["value"], strict=True))["beta"] == "0.5"
    assert app.code[0].value == planning.command([store.get(run.id).config])


def test_a_collapsed_run_says_so_and_its_notes_are_shown(store: Store, open_page: OpenPage) -> None:
    (run,) = store.create([config()])
    store.claim("test", "cpu", id=run)
    start = started().model_copy(update={"notes": ["The data have no mismatched split."]})
    store.append(run, [start, measured(0.25, 0.2), result(0.5, 0.25, collapsed="predicts one class")])
    app = open_page("run", id=run)
    assert not app.exception
    assert "Collapsed: predicts one class" in app.warning[0].value
    assert any("no mismatched split" in info.value for info in app.info)


def test_it_says_whose_weights_are_kept(store: Store) -> None:
    run = store.get(Story(store).complete().id)
    best = replace(run, config=run.config.model_copy(update={"select": "best"}))
    weights = Weights(epoch=4, step=40, path="checkpoints/step-0000040")
    assert run.result is not None
    result = run.result.model_copy(update={"weights": weights})
    # nothing is known of its weights
    assert run_view.reported_epoch(run) == run_view.reported_epoch(best) == ", after epoch 4."
    assert run_view.reported_epoch(replace(run, result=result)) == ", after epoch 4."
    assert run_view.reported_epoch(replace(best, result=result)) == ", after epoch 4, with the saved weights."
    lines = dict(run_view.provenance_lines(replace(best, result=result), None))
    assert lines["Weights kept"] == "after epoch 4 (the one reported)"

    assert "Weights kept" not in dict(run_view.provenance_lines(replace(run, status="stopped", result=None), None))


def test_unknown_and_missing_ids_lead_to_results(open_page: OpenPage) -> None:
    for query, words in (({"id": "nobody"}, "Run “nobody” not found"), ({}, "This page shows one run")):
        app = open_page("run", **query)
        assert not app.exception
        assert words in texts(app)
        assert [link.value for link in app.main.page_link] == ["Choose a run in Results"]
        assert not app.dataframe


def test_names_tags_and_notes_are_kept_and_shown_as_text_until_the_run_is_deleted(
    store: Store, open_page: OpenPage
) -> None:
    run = Story(store).complete()
    app = open_page("run", id=run.id)
    app.text_input[0].set_value("**bold** <i>name</i>")
    app.text_input[1].set_value("first, second, first,")
    app.text_area[0].set_value("a note\nof two lines")
    app.button(key="FormSubmitter:edit-run-Save").click().run()
    assert not app.exception
    row = store.get(run.id)
    assert (row.name, row.tags, row.note) == ("**bold** <i>name</i>", ("first", "second"), "a note\nof two lines")
    assert app.title[0].value.startswith("\\*\\*bold\\*\\* \\<i\\>name\\</i\\>")
    assert app.text[0].value == "a note\nof two lines"
    app.button(key="delete-run").click().run()
    assert store.list() == []


def test_the_log_is_text_and_read_only_when_opened(store: Store, open_page: OpenPage) -> None:
    run = Story(store).begin()
    (store.folder_of(run.id) / LOG).write_text("step 1\rstep 2\n<script>alert(1)</script>\n")
    app = open_page("run", id=run.id)
    assert "<script>" not in "".join(code.value for code in app.code)
    app.session_state["log"] = True
    app.run()
    assert app.code[-1].value == "step 2\n<script>alert(1)</script>"
