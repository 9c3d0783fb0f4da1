"""Bad input of every verb: one line that names the option and what is allowed, exit code 2, and nothing left behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isoviz.__main__ import main
from isoviz.runs.store import Store
from isoviz.watch import drift
from tests.dashboard.made_up import config, finish
from tests.posthoc.clouds import cloud
from tests.tiny import TinyModels, write_cola

OWN = "train --task own --text a --label b"
TRANSFORM = "transform --chain zca --in {box}/dev.npy --out {box}/after.npy --fit-on {box}/train.npy"
MEASURE = "measure --model {model} --task glue/cola --data {box}/cola"

LINES = {
    "train --model demo/nope": "--model: no such model",
    "train --task glue/cla": "did you mean 'glue/cola'",
    "train --method isobn --set beta=9": "--set beta: input should be less than or equal to 4",
    "train --method isobn --set beta=0.5,1": "sweep --grid",
    "train --epochs 0": "--epochs: input should be greater than or equal to 1",
    "train --lr nan": "--lr:",
    "train --precision fp8": "--precision: input should be 'auto', 'no', 'bf16' or 'fp16'",
    "train --early-stopping f1:2": "has no metric 'f1'",
    "train --task glue/cola": "hub cannot be reached",
    "train --repeat": "--repeat: only with --queue",
    "train --task own": "--text: --task own needs the column's name",
    "train --text a": "--text: is for --task own",
    OWN: "--data: own data need a file or a folder",
    f"{OWN} --share 2": "--share: input should be less than 1",
    "train --task squad --doc-stride 500 --data {box}/squad": "--doc-stride: must be less than max_length, 128 (got 500)",
    "sweep --method istar --grid lam": "expected name=value",
    "ruler --embeddings {box}/dev.npy --share 1": "--share: must be above 0 and below 1",
    "ruler --embeddings {box}/dev.npy --cosine 7": "--cosine: must be from -1 to 1",
    "ruler --embeddings {box}/dev.npy --labels=": "--labels: ",
    "ruler": "--model: give either a model or a file",
    "ruler --model {model} --pooling head": "--pooling: 'head' is not the vector of a text",
    "ruler --model {model} --task own": "--task: give your own texts",
    "ruler --model {model} --texts {box}/own.txt --task demo/qa": "--texts: give your own texts or a task",
    "ruler --model {model} --pairs {box}/dev.npy": "--pairs: only with embeddings or your own texts",
    "ruler --model {model} --pairs {box}/dev.npy --labels label": "--pairs: give labels or pairs, not both",
    "compare {box}/dev.npy {box}/train.npy": "encoders: all need the same documents and questions, in the same order; got 10, 120",
    "compare {box}/dev.npy {box}/dev.npy --queries {box}/dev.npy --relevance {box}/dev.npy": "--queries: give 2",
    "compare {box}/dev.npy {box}/dev.npy --queries {box}/dev.npy {box}/dev.npy": "--relevance: questions need relevance",
    "compare {box}/dev.npy {box}/dev.npy --margin 0": "--margin: input should be greater than 0",
    "compare {box}/dev.npy {box}/dev.npy --baseline a": "--baseline: only for runs",
    "compare demo/tiny-bert {model} --documents {box}/none.csv": "--documents: ",
    "measure --model {model} --rows out.csv": "--rows: only with --embeddings",
    "measure --embeddings {box}/dev.npy --rows {box}/no/out.csv": "--rows: no folder",
    "measure --embeddings {box}/dev.npy --by length": "--by: these vectors have no texts",
    "check {box}/wide.npy --baseline {box}/before.json --by topic": "--by: an array file has no columns",
    "check {box}/wide.npy --save a.json --by topic": "--by: only with --baseline",
    "frontier": "--embeddings",
    "frontier --embeddings {box}/dev.npy --margin 2": "--margin: must be at least 0 and below 1",
    "frontier --embeddings {box}/dev.npy --pairs {box}/no.csv": "--pairs: ",
    "check": "FILE",
    "check {box}/wide.npy": "--baseline: give either --baseline or --save",
    "check {box}/wide.npy --save a.json --pairs {box}/other.json": "--pairs: an array file has no columns",
    "check {box}/wide.npy --baseline {box}/before.json --fail-on row_cosine": "--fail-on: row_cosine cannot be judged: it needs ids",
    "check {box}/wide.npy --baseline {box}/before.json --fail-on mrr": "--fail-on: mrr cannot be judged: it needs pairs",
    "check {box}/holes.npy --save a.json": "vectors: ",
    "check {box}/wide.npy --save a.json --strict": "--strict: only with --baseline",
    "check {box}/wide.npy --save a.json --ids key": "--ids: an array file has no columns",
    "check {box}/wide.npy --baseline {box}/before.json --fail-on cosine": "unknown measure 'cosine'",
    "check {box}/wide.npy --baseline {box}/before.json --fail-on mean_cosine=-1": "--fail-on: a tolerance is a number from 0",
    "check {box}/wide.npy --baseline {box}/before.json --fail-on effective_rank": "--fail-on: effective_rank cannot be judged",
    "check {box}/train.npy --baseline {box}/before.json": "vectors: 8 dimensions, where the baseline has 20",
    "check {box}/wide.npy --baseline {box}/other.json": "--baseline: 'other.json' holds no baseline: format: input should be 1 (got 9)",
    "check {box}/half.npy --baseline {box}/before.json --same-rows": "--same-rows: ",
    "measure": "--model: give either a model or a file",
    "measure --embeddings {box}/dev.npy --labels=": "--labels: expected a value",
    "measure --model run:none --task glue/cola --data {box}/cola": "run not found: 'none'",
    f"{MEASURE} --layer -1": "layers 0 (embeddings) to 2 (got -1)",
    f"{MEASURE} --layer 1 --pooling head": "last layer (2) only",
    f"{MEASURE} --pooling max": "--pooling: input should be 'sentence'",
    f"{MEASURE} --split tests": "--split: no split 'tests' (allowed: train, validation)",
    f"{MEASURE} --max-length 2": "--max-length: must be at least 3",
    f"{MEASURE} --as-weights": "--as-weights: only with --embeddings",
    "runs show nothing": "no run 'nothing'",
    "runs list --limit -1": "--limit: input should be greater than or equal to 0 (got -1)",
    "worker --cpus 2": "--cpus: only with --ray",
    "compare nothing": "no run and no experiment 'nothing'",
    "compare sweep --by epochs": "--by: all of these runs have the same epochs",
    "study run istar-figure-2 --model demo/tiny-bert": "--model: 'istar-figure-2' does not take this",
    "study run isobn-figures --data {box}/file": "--data: expected TASK=DIR",
    "study run istar-figure-22": "did you mean 'istar-figure-2'?",
    "study run istar-figure-2 --scale huge": "--scale: input should be 'quick' or 'full'",
    "study": "ACTION",
    f"{TRANSFORM} --chain language_removal": "--groups: ",
    f"{TRANSFORM} --groups language": "--groups: ",
    f"{TRANSFORM} --chain embed_filter": "--chain: ",
    "upgrade --old {box}/dev.npy --new {box}/train.npy": "--new: ",
    "upgrade --old {box}/dev.npy --new {box}/dev.npy --out {box}/map.npy": "--out: ",
    "upgrade --old {box}/dev.npy --new {box}/dev.npy --map pca": "--map: ",
    "upgrade --old {box}/dev.npy --new {box}/dev.npy --require recall10=2": "--require: expected recall10=SHARE",
    f"{TRANSFORM} --chain zcaa": "--chain: unknown transform 'zcaa'; did you mean 'zca'",
    f"{TRANSFORM} --chain isolayer": "--chain: 'isolayer' is trained on a run's labels",
    f"{TRANSFORM} --chain all_but_the_top:remove=99": "remove must be at most 8",
    f"{TRANSFORM} --out after.csv": "--out: must end in .npy, got 'after.csv'",
    f"{TRANSFORM} --fit-on {{box}}/narrow.npy": "narrow.npy' has 3 dimensions",
    f"{TRANSFORM} --in {{box}}/holes.npy": "--in: row 5, dimension 3: the number is NaN",
    "links renew runnr": "did you mean 'runner'?",
    "app --port 99999": "--port: input should be less than or equal to 65535",
    "app --port 48777 --open {box}/absent.npy": "--open: no file",
    "lessons": "--out: give either --out or --check",
    "lessons --out {box}/nowhere/lessons.html": "--out: there is no folder",
    "page --out {box}/page.html --beside {box}/labels.csv": "--beside: only with --embeddings",
    "page --out {box}/page.html --embeddings {box}/dev.npy --label-column topic": "--label-column: an array file has no columns",
    "mcp --allow-everything": "--allow-everything",
    "mcp --store": "--store",
    "fly": "invalid choice: 'fly'",
    "": "VERB",
}
IN_STORE = ("runs", "compare", "worker")


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files to be refused, and a store with one experiment."""
    folder = tmp_path_factory.mktemp("box")
    write_cola(folder / "cola")
    (folder / "squad").mkdir()
    row = {"id": "1", "question": "q ?", "context": "a b", "answers": "a"}
    for split in ("train", "validation"):
        pd.DataFrame([row]).to_json(folder / "squad" / f"{split}.jsonl", orient="records", lines=True)
    (folder / "file").write_text("")
    holes = cloud(9)
    holes[4, 2] = np.nan
    arrays = {"train": cloud(), "dev": cloud(10, seed=1), "narrow": cloud(9, 3), "holes": holes}
    for name, points in {**arrays, "words": np.full((3, 8), "a")}.items():
        np.save(folder / f"{name}.npy", points)
    wide = cloud(90, 20)
    for name, points in (("wide", wide), ("half", wide[:40])):
        np.save(folder / f"{name}.npy", points)
    drift.baseline(wide).write(folder / "before.json")
    (folder / "other.json").write_text('{"format": 9}')
    store = Store(folder / "store")
    for method in ("baseline", "isobn"):
        finish(store, config(method), 0.5, 0.25, group="sweep")
    store.close()
    return folder


@pytest.fixture(autouse=True)
def _no_progress_bars() -> Iterator[None]:
    """As in a separate process, where the command line sets this before importing transformers."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    yield
    logging.enable_progress_bar()


@pytest.mark.parametrize("line", LINES)
def test_one_line_and_exit_code_2(
    line: str,
    box: Path,
    tmp_path: Path,
    tiny_models: TinyModels,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "untouched"))
    monkeypatch.chdir(tmp_path)
    words = line.format(box=box, model=tiny_models("bert")).split()
    words += ["--store", str(box / "store")] if line.startswith(IN_STORE) else []
    try:
        code: object = main(words)
    except SystemExit as ended:
        code = ended.code
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    *notes, last = err.splitlines()
    assert last.startswith("isoviz: ") and LINES[line] in last
    assert not notes
    assert not (tmp_path / "untouched" / "isoviz.db").exists() or line.startswith("links") or "run:" in line
    assert not list(box.glob("*.partial")) and not (box / "after.npy").exists()
