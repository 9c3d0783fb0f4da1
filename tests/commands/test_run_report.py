"""The command line's report on runs: labelled numbers, baselines, collapse."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace

from isoviz.__main__ import main
from isoviz.commands import runs
from isoviz.commands.output import describe
from isoviz.operations.documents import as_json
from isoviz.runs.store import Store
from tests.dashboard.made_up import config, finish


def test_text_names_cloud_n_d_baselines_and_warnings(tmp_path):
    store = Store(tmp_path)
    run = finish(store, config("istar", 0, {"lam": 1}), 0.5, 0.25, collapsed="predicts one class")
    summary = replace(store.summary(run), notes=("The data have no mismatched split.",))
    first, scores, head, layers, *rest = describe(summary).splitlines()
    assert "istar lam=1.0" in first and first.endswith("seed 0")
    assert scores.strip().startswith("validation (n = 500): accuracy 0.5000, matthews 0.5000 (majority 0.5000, ")
    assert head.strip().startswith("head (n = 500, d = 128): ") and "isoscore 0.200" in head
    assert layers.strip() == "layers (n = 10,000, d = 128): isoscore_star 0.250"
    assert "collapsed: predicts one class" in "".join(rest) and rest[-1].strip() == f"note: {summary.notes[0]}"
    document = as_json(store.get(run), summary)
    assert document["collapsed"] == "predicts one class" and document["notes"] == list(summary.notes)
    assert document["baselines"] == {"majority": 0.5, "bag_of_words": 0.625}


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
