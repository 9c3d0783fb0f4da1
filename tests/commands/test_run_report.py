"""The command line's report on runs: labelled numbers, times, baselines, collapse."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

from isoviz.__main__ import main
from isoviz.commands import runs
from isoviz.commands.run_report import describe
from isoviz.operations.documents import as_json
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, finish, result, row, started


def finished(seed=0, value=0.5, star=0.25, collapsed=None, method="istar", **params):
    ended = result(value, star, collapsed=collapsed)
    ended = ended.model_copy(
        update={
            "timing": {"train_seconds": 30.0, "evaluate_seconds": 9.0, "measure_seconds": 4.26, "total_seconds": 52.5}
        }
    )
    return row(f"r{seed}", config(method, seed, params), outcome=ended)


def test_text_names_cloud_n_d_baselines_and_its_times():
    first, scores, head, layers, times = describe(finished(lam=1), started()).splitlines()
    assert "istar lam=1.0" in first and first.endswith("seed 0")
    assert scores.strip() == (
        "validation (n = 500): accuracy 0.5000 (majority 0.5000, bag of words 0.6250), matthews 0.5000"
    )
    assert head.startswith("    head, what the output layer reads (validation, n = 500, d = 128): IsoScore 0.200")
    assert layers.strip() == "layers, all layers' tokens (validation, n = 10,000, d = 128): IsoScore* (ζ = 0.2) 0.250"
    assert "IsoScore*" not in head and "±" not in "".join([first, scores, head, layers])
    assert times == "    training 30.0 s, evaluating 9.0 s, measuring 4.3 s, total 52.5 s"


def test_collapse_and_notes_are_in_text_and_json():
    collapsed = finished(collapsed="predicts one class")
    start = started().model_copy(update={"notes": ["The data have no mismatched split."]})
    text = describe(collapsed, start)
    assert "collapsed: predicts one class" in text and "note: The data have no mismatched split." in text
    document = as_json(collapsed, start)
    assert document["collapsed"] == "predicts one class" and document["notes"] == start.notes
    assert document["baselines"] == {"majority": 0.5, "bag_of_words": 0.625}
    assert as_json(finished())["collapsed"] is None and "collapsed" not in describe(finished())


def test_listing_waits_for_no_catalogue(tmp_path):
    """What `list` imports is most of its time."""

    finish(Store(tmp_path), config(), 0.5, 0.25)
    script = (
        "import sys; from isoviz.__main__ import main; main(['runs', 'list', '--store', sys.argv[1]]);"
        "print(sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "finished" in done.stdout
    imported = set(ast.literal_eval(done.stderr.splitlines()[-1]))
    assert "sqlalchemy" in imported and not imported & {"numpy", "torch", "scipy", "pandas", "transformers"}


def test_the_command_lists_the_newest_runs_and_says_how_many_there_are(tmp_path, capsys, monkeypatch):

    monkeypatch.setattr(runs, "LISTED", 2)
    store, option = Store(tmp_path), ["--store", str(tmp_path)]
    oldest, middle, newest = (finish(store, config(seed=seed), 0.5, 0.25) for seed in range(3))
    assert main(["runs", "list", *option]) == 0
    listed = capsys.readouterr()
    assert listed.out.index(newest) < listed.out.index(middle) and oldest not in listed.out
    assert listed.err == "the newest 2 of 3 runs; --limit 0 lists all\n"
    assert main(["runs", "list", "--limit", "0", *option]) == 0
    everything = capsys.readouterr()
    assert oldest in everything.out and not everything.err
    assert main(["runs", "list", "--json", *option]) == 0
    assert [run["id"] for run in json.loads(capsys.readouterr().out)["runs"]] == [newest, middle, oldest]
    assert main(["runs", "list", "--limit", "1", "--json", *option]) == 0
    assert [run["id"] for run in json.loads(capsys.readouterr().out)["runs"]] == [newest]
