"""`measure`: the measures of a file and of a model, one JSON document, one-line errors."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from scipy.stats import spearmanr
from transformers.utils import logging

from isoviz import metrics
from isoviz.__main__ import main
from isoviz.models import profile
from isoviz.tables.kinds import numpy_arrays as npy
from tests import tiny
from tests.models.sentence_folders import make

CLOUD = np.random.default_rng(0).normal(size=(300, 6)) * [4, 2, 1, 1, 1, 1] + 3


@pytest.fixture
def call(capsys):
    """Runs the command line here; gives its exit code, stdout and stderr."""

    def run(*words):
        try:
            code = main(["measure", *map(str, words)])
        except SystemExit as exit:
            code = exit.code
        return code, *capsys.readouterr()

    # A fresh process reads `quiet_libraries`' environment; here the library may have been imported long before.
    logging.disable_progress_bar()
    yield run
    logging.enable_progress_bar()


@pytest.fixture
def model(tiny_models, cola):
    return ["--model", tiny_models("bert"), "--task", "glue/cola", "--data", cola]


def save(folder, suffix, points=CLOUD):
    path = folder / f"x{suffix}"
    if suffix == ".npy":
        np.save(path, points)
    elif suffix == ".npz":
        np.savez(path, points=points)
    else:
        save_file({"points": points}, path)
    return path


def test_big_arrays_are_mapped_and_read_in_blocks_to_the_same_values(call, tmp_path, monkeypatch):
    path = save(tmp_path, ".npy", CLOUD.astype(np.float32))
    in_memory = json.loads(call("--embeddings", path, "--json")[1])
    monkeypatch.setattr("isoviz.tables.arrays.MAP_ABOVE", 100)
    monkeypatch.setattr(profile, "STREAM_ABOVE", 100)
    monkeypatch.setattr(profile, "_BLOCK_ROWS", 77)
    maps = []
    mapped = npy.mapped
    monkeypatch.setattr(npy, "mapped", lambda *a: maps.append(mapped(*a)) or maps[-1])
    blocks = json.loads(call("--embeddings", path, "--json")[1])
    assert isinstance(maps[0], np.memmap)
    for name in ("isoscore", "isoscore_unbiased", "ev", "mean_cosine", "effective_rank", "twonn"):
        assert blocks[name] == pytest.approx(in_memory[name], rel=1e-9), name


def test_a_column_of_a_table_and_its_labels(call, tmp_path):
    side = (CLOUD[:, 0] > np.median(CLOUD[:, 0])).astype(int)
    frame = pd.DataFrame({"kind": side, "embedding": (CLOUD + 40 * side[:, None]).tolist(), "other": CLOUD.tolist()})
    frame.to_parquet(tmp_path / "x.parquet")
    code, out, err = call("--embeddings", tmp_path / "x.parquet", "--column", "embedding", "--labels", "kind", "--json")
    document = json.loads(out)
    assert (code, err, document["d"]) == (0, "", 6)
    assert document["isoscore"] == pytest.approx(metrics.isoscore(np.array(frame["embedding"].tolist())))
    assert document["labels"]["classes"] == 2 and document["labels"]["knn"] > 0.9
    assert document["lidar"] == pytest.approx(1)  # two labels differ in one direction
    read_outs = {"knn", "probe", "noise_floor"}
    assert set(document["labels"]) == {"classes", "rows", "most_common"} | read_outs
    frame[["kind"]].rename(columns={"kind": "label"}).to_csv(tmp_path / "labels.csv", index=False)
    path = save(tmp_path, ".npy", np.array(frame["embedding"].tolist()))
    beside = json.loads(call("--embeddings", path, "--labels", tmp_path / "labels.csv", "--json")[1])
    assert beside["labels"] == pytest.approx(document["labels"])
    assert "Linear probe" in call("--embeddings", path, "--labels", tmp_path / "labels.csv")[1]


def test_pairs_and_relevance_of_a_file(call, tmp_path):
    ids = [f"t{row}" for row in range(len(CLOUD))]
    names = [f"x{index}" for index in range(CLOUD.shape[1])]
    frame = pd.DataFrame(CLOUD, columns=names).assign(id=ids, label=range(len(CLOUD)))
    frame.to_parquet(tmp_path / "x.parquet")
    left, right = np.arange(0, 50), np.arange(50, 100)
    rated = pd.DataFrame({"left": frame["id"][left].tolist(), "right": frame["id"][right].tolist(), "score": left % 7})
    rated.to_csv(tmp_path / "pairs.csv", index=False)
    document = json.loads(call("--embeddings", tmp_path / "x.parquet", "--pairs", tmp_path / "pairs.csv", "--json")[1])
    unit = CLOUD / np.linalg.norm(CLOUD, axis=1, keepdims=True)
    expected = spearmanr(left % 7, (unit[left] * unit[right]).sum(axis=1)).statistic
    assert document["pairs"]["pairs"] == 50 and "labels" not in document
    assert document["pairs"]["spearman_cosine"] == pytest.approx(expected, abs=1e-6)
    related = (left % 7) >= 0.8 * 6
    assert document["pairs"]["alignment"] == pytest.approx(
        metrics.alignment(CLOUD[left[related]], CLOUD[right[related]]), abs=1e-6
    )
    unrelated = ~np.tri(len(CLOUD), dtype=bool)
    unrelated[left, right] = False
    floor = np.quantile((unit @ unit.T)[unrelated], 0.99)
    assert document["pairs"]["noise_floor"] == pytest.approx(floor, abs=1e-6)

    answers = pd.DataFrame({"query": ids[:40], "document": ids[40:80], "relevance": 1})
    answers.to_csv(tmp_path / "answers.csv", index=False)
    code, out, _ = call("--embeddings", tmp_path / "x.parquet", "--pairs", tmp_path / "answers.csv", "--json")
    queries = json.loads(out)["queries"]
    scores = unit[:40] @ unit[40:].T
    first = (scores > scores[np.arange(40), np.arange(40)][:, None]).sum(axis=1)
    assert code == 0 and (queries["queries"], queries["documents"]) == (40, len(CLOUD) - 40)
    assert queries["recall10_cosine"] == pytest.approx((first < 10).mean(), abs=1e-9)
    command = ("--embeddings", tmp_path / "x.parquet", "--pairs", tmp_path / "answers.csv")
    answers.assign(relevance=[0] + [1] * 39).to_csv(
        tmp_path / "answers.csv", index=False
    )  # one query without an answer
    document = json.loads(call(*command, "--json")[1])
    note = "1 of 40 queries left out: no document is relevant to them."
    assert note in document["warnings"] and document["queries"]["queries"] == 39
    assert document["queries"]["documents"] == len(CLOUD) - 40
    assert document["queries"]["recall10_cosine"] == pytest.approx((first[1:] < 10).mean(), abs=1e-9)
    answers.to_csv(tmp_path / "answers.csv", index=False)
    message = call(*command)[1]
    assert f"queries: 40 queries, {len(CLOUD) - 40} documents" in message and "nDCG@10, cosine" in message


def test_rows_as_output_vectors(call, tmp_path):
    path = save(tmp_path, ".npy", CLOUD / 10)
    weights = json.loads(call("--embeddings", path, "--as-weights", "--json")[1])["as_weights"]
    i1, i2 = metrics.partition(CLOUD / 10)
    assert (weights["i1"], weights["i2"]) == pytest.approx((i1, i2))
    unit = CLOUD / np.sqrt((CLOUD**2).sum(axis=1).mean())
    assert (weights["i1_unit"], weights["i2_unit"]) == pytest.approx(metrics.partition(unit))
    assert weights["norm_mean"] == pytest.approx(np.linalg.norm(CLOUD / 10, axis=1).mean())
    out = call("--embeddings", path, "--as-weights")[1]
    assert "rows read as output vectors" in out
    assert "norm_mean" in out


def test_more_columns_than_rows_asks_whether_it_is_transposed(call, tmp_path):
    code, out, err = call("--embeddings", save(tmp_path, ".npy", CLOUD.T))
    assert code == 0
    assert "n = 6 points, d = 300" in out
    assert "transpose the array" in err
    assert "transpose" not in call("--embeddings", save(tmp_path, ".npy"))[2]


def test_a_model_without_layer_and_pooling_is_a_table_of_all(call, model):
    code, out, _ = call(*model, "--json")
    document = json.loads(out)
    assert code == 0
    assert len(document["by_layer"]) == 10
    last = next(row for row in document["by_layer"] if (row["layer"], row["pooling"]) == (2, "cls"))
    assert document["cloud"]["pooling"] == "cls"
    assert document["cloud"]["layer"] is None
    for name in set(last) - {"cloud", "layer", "pooling", "split"}:
        assert document[name] == last[name], name
    assert last["isoscore"] is not None
    assert document["output_embeddings"] is None  # an encoder without a language-model head
    across = document["across_layers"]
    assert across["pooling"] == "cls" and across["retention"]["rows"] == 32
    assert [len(across["retention"][name]) for name in ("from_before", "to_last")] == [2, 2]
    tokens = [row["prompt_entropy"] for row in document["by_layer"] if row["pooling"] == "tokens"]
    lowest = int(np.argmin(tokens))
    assert (across["valley"] and across["valley"]["layer"]) == (1 if lowest == 1 else None)
    code, out, err = call(*model)
    lines = out.splitlines()
    headings = [metric.heading for metric in metrics.catalogue().values() if f" {metric.heading}" in lines[1]]
    assert {"IsoScore", "IsoScore*", "unbiased", "EV₁", "Mean cosine", "PR", "Effective rank", "TwoNN"} - set(
        headings
    ) == {
        "IsoScore*"  # needs Σ_S
    }
    assert [line.split()[:3] for line in lines[2:12]] == [
        *([str(layer), pooling, "32"] for pooling in ("cls", "mean") for layer in range(3)),
        *([str(layer), "tokens", str(document["by_layer"][6]["n"])] for layer in range(3)),
        ["2", "head", "32"],
    ]
    assert "last layer, cls: n = 32 points, d = 16 dimensions" in out
    assert "Traceback" not in err


@pytest.mark.parametrize("pooling", ["cls", "mean", "tokens", "head"])
def test_one_cloud_is_the_tables_entry(call, model, pooling):
    table = json.loads(call(*model, "--json")[1])["by_layer"]
    document = json.loads(call(*model, "--pooling", pooling, "--json")[1])
    assert "by_layer" not in document
    expected = next(row for row in table if (row["layer"], row["pooling"]) == (2, pooling))
    assert set(expected) - {"cloud", "layer", "pooling", "split"} <= set(document)
    for name in ("n", "d", "isoscore", "isoscore_unbiased", "ev", "mean_cosine", "twonn", "sigma"):
        assert document[name] == pytest.approx(expected[name]), name
    assert document["cloud"]["pooling"] == pooling


def test_a_sentence_transformers_model_is_measured_by_the_vectors_it_gives(call, tiny_models, tmp_path, cola):
    folder = make(tmp_path / "st", tiny_models("bert"), dense=8, prompts={"query": "w1 "})
    words = ["--model", folder, "--task", "glue/cola", "--data", cola, "--json"]
    plain = json.loads(call(*words)[1])
    assert (plain["cloud"]["pooling"], plain["d"]) == ("sentence", 8)
    document = json.loads(call(*words, "--pooling", "sentence", "--prompt", "query", "--truncate-dim", "5")[1])
    assert document["d"] == 5 and document["cloud"]["prompt"] == "query" and document["isoscore"] != plain["isoscore"]
    assert json.loads(call(*words, "--layer", "1")[1])["cloud"]["pooling"] == "cls"
    assert (
        "pooling 'sentence' exists for the last layer (2) only"
        in call(*words, "--pooling", "sentence", "--layer", "1")[2]
    )


def test_the_direction_says_which_language_is_read(call, tiny_models, tmp_path):
    folder = tiny.write("seq2seq", tmp_path / "data")
    words = ["--model", tiny_models("bart"), "--task", "wmt16/ro-en", "--data", folder, "--pooling", "mean", "--json"]
    default, forwards, back = (
        json.loads(call(*words, *more)[1]) for more in ([], ["--direction", "ro-en"], ["--direction", "en-ro"])
    )
    assert default == forwards
    # the tiny set's English is its Romanian backwards: other places, so other vectors
    assert forwards["isoscore"] != back["isoscore"]
    code, out, err = call(*words, "--direction", "de-en")
    assert (code, out) == (2, "")
    assert "--direction: 'wmt16/ro-en' has no direction 'de-en' (allowed: ro-en, en-ro)" in err


def test_own_data_by_its_columns(call, tiny_models, tmp_path):
    rows = pd.DataFrame({"satz": [f"w{i} w{i + 1}" for i in range(20)], "art": ["x", "y"] * 10})
    rows.to_csv(tmp_path / "own.csv", index=False)
    words = ["--model", tiny_models("bert"), "--task", "own", "--data", tmp_path / "own.csv"]
    document = json.loads(call(*words, "--text", "satz", "--label", "art", "--split", "train", "--json")[1])
    assert document["n"] == 16  # a fifth is held out
    assert json.loads(call(*words, "--text", "satz", "--label", "art", "--share", "0.5", "--json")[1])["n"] == 10
    assert "--data: " in call(*words, "--text", "nothing", "--label", "art")[2]
    for task, got in ((["--task", "demo/sentiment"], " (got --task demo/sentiment)"), ([], "")):
        code, _, err = call("--model", tiny_models("bert"), *task, "--text", "satz")
        assert (code, err.strip()) == (2, f"isoviz: --text: is for --task own{got}")


@pytest.fixture(scope="module")
def finished_run(tiny_models, tmp_path_factory):
    """A run of one epoch, really trained, in this machine's own store."""
    from isoviz.config import RunConfig
    from isoviz.runs.execution import execute
    from isoviz.runs.store import Store

    data = tiny.write_cola(tmp_path_factory.mktemp("data") / "cola")
    store = Store(tmp_path_factory.mktemp("home"))
    config = RunConfig(
        model=str(tiny_models("bert")), task="glue/cola", data=str(data), method="isobn", epochs=1, learning_rate=1e-2
    )
    (run,) = store.create([config])
    execute(store, run)
    yield store, run, data
    store.close()


def test_a_finished_run_is_measured_layer_by_layer_and_at_its_head(call, finished_run, monkeypatch):
    from isoviz.exploring import encoders

    store, run, data = finished_run
    finished = encoders._finished
    monkeypatch.setattr(encoders, "_finished", lambda name, _: finished(name, store))
    options = ["--model", f"run:{run}", "--task", "glue/cola", "--data", data]
    code, out, err = call(*options, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [(row["layer"], row["pooling"]) for row in document["by_layer"]][-1] == (2, "head")
    assert len(document["by_layer"]) == 10
    reported = store.get(run).result.isotropy
    head = document["by_layer"][-1]
    # after the method, as the run measured
    assert head["isoscore"] == pytest.approx(reported.number("isoscore"), rel=1e-4)
    assert head["hubness"] == pytest.approx(reported.number("hubness"), rel=1e-2)
    assert document["output_embeddings"]["i1"] == pytest.approx(reported.number("i1"), rel=1e-6)
    assert "newly initialised" not in err
    alone = json.loads(call(*options, "--pooling", "head", "--json")[1])
    assert alone["isoscore"] == pytest.approx(head["isoscore"]) and alone["cloud"]["pooling"] == "head"
    code, out, _ = call(*options)
    assert code == 0 and "output layer of the run's head" in out
    assert call(*options, "--pooling", "head", "--layer", "1")[0] == 2


def test_the_text_says_what_cannot_be_estimated_and_names_dead_dimensions(call, tmp_path):
    points = np.random.default_rng(0).standard_t(2, size=(7, 6))
    points[:, 3] = 2.0
    np.save(tmp_path / "seven.npy", points)
    code, out, _ = call("--embeddings", tmp_path / "seven.npy")
    assert code == 0 and "cannot be estimated from 7 rows\n" in out and "dead dimensions                 3\n" in out
    document = json.loads(call("--embeddings", tmp_path / "seven.npy", "--json")[1])
    assert document["isoscore_unbiased"] is None is document["isoscore_unbiased_interval"] and document[
        "dead_dimensions"
    ] == [3]
