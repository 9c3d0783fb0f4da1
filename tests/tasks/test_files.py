"""Task data from files: every format is read, every fault is named with its place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isoviz import tasks
from isoviz.errors import DataError
from isoviz.tasks import checking, files, own
from isoviz.tasks.protocol import OwnTask

COLA = tasks.get("glue/cola")


def frame(n=6, **columns):
    return pd.DataFrame({"sentence": [f"text {i}" for i in range(n)], "label": [i % 2 for i in range(n)], **columns})


def write(folder, suffix, **splits):
    folder.mkdir(exist_ok=True)
    for name, table in splits.items():
        path = folder / f"{name}{suffix}"
        if suffix == ".parquet":
            table.to_parquet(path)
        elif suffix == ".csv":
            table.to_csv(path, index=False)
        elif suffix == ".tsv":
            table.to_csv(path, index=False, sep="\t")
        elif suffix in (".arrow", ".feather", ".ipc"):
            table.to_feather(path)
        else:
            table.to_json(path, orient="records", lines=True)
    return folder


@pytest.mark.parametrize("suffix", files.allowed())
def test_every_format_gives_the_same_rows(tmp_path, suffix):
    table = frame(idx=range(6))
    table.loc[0, "sentence"] = 'NA, she said: "naïve"'
    data = tasks.load(COLA, write(tmp_path, suffix, train=table, validation=frame()))
    assert data.train["sentence"].tolist() == table["sentence"].tolist()
    assert data.train["label"].tolist() == table["label"].tolist()
    assert data.train["label"].dtype == np.int64
    reference = tasks.load(COLA, write(tmp_path / "again", ".parquet", train=table, validation=frame()))
    assert data.fingerprint == reference.fingerprint


def test_labels_and_texts_keep_their_zeros(tmp_path):
    lines = [f"{text},{label}" for text in ("007", "1.50", "12") for label in ("01", "1")]
    (tmp_path / "own.csv").write_text("\n".join(["text,label", *lines * 4]) + "\n")
    columns = own.completed(tmp_path / "own.csv", OwnTask(text="text", label="label"))
    assert columns.label_names == ("01", "1")
    data = tasks.load(tasks.get("own", columns), tmp_path / "own.csv")
    assert {*data.train["text"], *data.validation["text"]} == {"007", "1.50", "12"}


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["1", "2", ""], [1, 2, None]),
        (["1.5", "+2e3", " 3"], [1.5, 2000.0, 3.0]),
        (["01", "1", "2"], ["01", "1", "2"]),
        (["01.0", "1", "2"], ["01.0", "1", "2"]),
        (["0x1", "2", "3"], ["0x1", "2", "3"]),
        (["nan", "1", "2"], ["nan", "1", "2"]),
        (["true", "FALSE", ""], [True, False, None]),
        (["true", "no", ""], ["true", "no", None]),
        (["+1", "-1", ""], [1, -1, None]),
        ([str(2**63), str(2**63 + 1), "1"], [2**63, 2**63 + 1, 1]),
        (["9" * 20, "1", "2"], [1e20, 1.0, 2.0]),
        (["", "", ""], [None] * 3),
    ],
)
def test_a_column_is_numbers_only_if_all_cells_are_and_none_is_a_code(tmp_path, cells, read):
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *(f"a,{cell}" for cell in cells)]) + "\n")
    column = files.tabular(tmp_path / "a.csv")["label"]
    assert column.astype(object).where(column.notna(), None).tolist() == read


def test_a_row_with_fewer_cells_is_filled_and_one_with_more_is_named(tmp_path):
    write(tmp_path, ".csv", train=frame(), validation=frame())
    lines = ["sentence,label,note", 'a,1,"b, c"', "b,0", *["c,1,x"] * 3]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    assert tasks.load(COLA, tmp_path).train["label"].tolist() == [1, 0, 1, 1, 1]
    (tmp_path / "train.csv").write_text("\n".join([*lines, "a, b,0,x"]) + "\n")
    with pytest.raises(DataError, match=r"row 6 has more cells than the header \(3\); .* commas in double quotes"):
        tasks.load(COLA, tmp_path)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["a,0", '"b,1', "c,0"], "row 2 has a double quote that is never closed"),
        (["a,0", 'b,"1'], "row 2 has a double quote that is never closed"),
        (["a,0", 'b,"'], "row 2 has a double quote that is never closed"),
        (['a 5",0', 'b,"1'], "row 2 has a double quote that is never closed"),
        (["a,0", "b", '"c"",0'], "row 3 has a double quote that is never closed"),
    ],
)
@pytest.mark.parametrize("tail", ["", "\n"])
def test_a_quote_that_is_never_closed_takes_no_rows_silently(tmp_path, rows, fault, tail):
    (tmp_path / "a.csv").write_text("\n".join(["sentence,label", *rows]) + tail)
    with pytest.raises(DataError, match=fault):
        files.tabular(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("train", "messages"),
    [
        (frame().rename(columns={"sentence": "text"}), ["lacks the column sentence", "it has text, label"]),
        (frame(sentence=["a", "", "b", "c", "   ", "d"]), ["empty 'sentence' in 2 rows (2, 5)"]),
        (frame(label=[0, 1, None, 1, 0, 1]), ["empty 'label' in 1 row (3)"]),
        (frame(label=[0, 1, 7, 1, 0, 1]), ["0 = unacceptable, 1 = acceptable", "7"]),
        (frame(label=["acceptable", "fine"] * 3), ["must be one of"]),
        (frame(label=[1] * 6), ["one class only ('acceptable')"]),
        (frame(label=[-1] * 6), ["hidden label of a test split"]),
        (frame(0), ["no rows"]),
    ],
)
def test_rows_that_cannot_serve_the_task_are_named_in_one_line(tmp_path, train, messages):
    write(tmp_path, ".csv", train=train, validation=frame())
    with pytest.raises(DataError) as caught:
        tasks.load(COLA, tmp_path)
    assert caught.value.field == "data" and "\n" not in str(caught.value)
    assert [message for message in messages if message not in str(caught.value)] == []


@pytest.mark.parametrize("suffix", files.allowed())
def test_empty_and_broken_files(tmp_path, suffix):
    write(tmp_path, suffix, train=frame(), validation=frame())
    broken = tmp_path / f"train{suffix}"
    broken.write_bytes(b"")
    with pytest.raises(DataError, match="is empty"):
        tasks.load(COLA, tmp_path)
    broken.write_bytes(b'{"sentence": "a\n\x00\x01"')
    with pytest.raises(DataError, match=f"train{suffix}"):
        tasks.load(COLA, tmp_path)


def test_a_line_that_is_not_json_is_named(tmp_path):
    write(tmp_path, ".jsonl", train=frame(), validation=frame())
    lines = (tmp_path / "train.jsonl").read_text().splitlines()
    (tmp_path / "train.jsonl").write_text("\n".join([*lines[:3], '{"sentence": "cut off', *lines[3:]]))
    with pytest.raises(DataError, match=r"train.jsonl cannot be read as JSON lines: line 4 is not a JSON object"):
        tasks.load(COLA, tmp_path)


def test_folders(tmp_path):
    with pytest.raises(DataError, match="not a folder"):
        tasks.load(COLA, tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"no train split .*looked for train as .parquet, .csv, .tsv, .jsonl"):
        tasks.load(COLA, tmp_path)
    write(tmp_path, ".csv", train=frame())
    with pytest.raises(DataError, match="no validation split"):
        tasks.load(COLA, tmp_path)
    write(tmp_path, ".parquet", train=frame())
    with pytest.raises(DataError, match=r"several files for the train split .*train.csv, train.parquet"):
        tasks.load(COLA, tmp_path)


def test_report_counts_labels_and_notes_overlap(tmp_path):
    train = pd.concat([frame(), frame(1)])
    report = tasks.check_data(COLA, write(tmp_path, ".csv", train=train, validation=frame(2)))
    assert report.rows == {"train": 7, "validation": 2}
    assert report.labels["train"] == {"unacceptable": 4, "acceptable": 3}
    assert report.preview["validation"][0] == {"sentence": "text 0", "label": 0}
    assert report.notes == ("2 validation rows also appear in train.", "1 rows are repeated inside train.")


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_long_splits_are_checked_by_sample(tmp_path, suffix, monkeypatch):
    train = frame(400, sentence=[f"text {row}" + " more" * (row % 3) for row in range(400)])
    folder = write(tmp_path, suffix, train=train, validation=frame(30))
    seen = []
    plain = checking.check
    monkeypatch.setattr(checking, "check", lambda rows, *rest: seen.append(list(rows.index)) or plain(rows, *rest))
    report = tasks.check_data(COLA, folder, sample=50)
    assert report.rows == {"train": 400, "validation": 30} and report.looked_at == {"train": 50, "validation": 30}
    assert sum(report.labels["train"].values()) == 50
    assert [row["sentence"] for row in report.preview["train"]] == train["sentence"].tolist()[:5]
    assert seen[0][:5] == [0, 1, 2, 3, 4] and len(set(seen[0])) == 50 and max(seen[0]) > 200  # from all over the file
    assert tasks.check_data(COLA, folder, sample=50) == report
    checked = tasks.check_data(COLA, folder)
    assert checked.looked_at == checked.rows == report.rows
    one = write(tmp_path / "one", suffix, train=train.assign(label=[1] + [0] * 399), validation=frame(30))
    assert tasks.check_data(COLA, one, sample=3).rows["train"] == 400  # a part may lack a class
    with pytest.raises(DataError, match="one class only"):
        tasks.check_data(COLA, write(tmp_path / "none", suffix, train=train.assign(label=0), validation=frame(30)))


def test_shards_are_one_split_and_must_be_complete(tmp_path):
    for number in range(3):
        frame(4, sentence=[f"part {number} row {i}" for i in range(4)]).to_parquet(
            tmp_path / f"train-0000{number}-of-00003.parquet"
        )
    frame().to_parquet(tmp_path / "validation.parquet")
    data = tasks.load(COLA, tmp_path)
    assert data.train["sentence"].tolist() == [f"part {p} row {i}" for p in range(3) for i in range(4)]
    (tmp_path / "train-00001-of-00003.parquet").unlink()
    with pytest.raises(DataError, match="lacks part 1 of 3"):
        tasks.load(COLA, tmp_path)


@pytest.mark.parametrize("suffix", files.allowed())
@pytest.mark.parametrize("limit", [1, 3, 7, 20, 50])
def test_capped_rows_are_a_subset_of_the_full_data(tmp_path, suffix, limit):
    table = frame(20, sentence=[f"text {i}" for i in range(20)])
    write(tmp_path, suffix, train=table, validation=table)
    if suffix == ".parquet":
        table.to_parquet(tmp_path / "train.parquet", row_group_size=3)
    data = tasks.load(COLA, tmp_path, max_train=limit, max_eval=limit)
    expected = sorted(np.random.default_rng(0).choice(20, size=limit, replace=False)) if limit < 20 else range(20)
    assert data.train["sentence"].tolist() == [f"text {i}" for i in expected]
    assert data.validation["sentence"].tolist() == table["sentence"].tolist()[:limit]


def test_a_stored_run_finds_the_rows_that_it_was_trained_on():
    assert files.chosen(2_000)(67_349)[:4].tolist() == [12, 14, 20, 45]


def test_tsv_with_stray_quotes(tmp_path):
    write(tmp_path, ".tsv", train=frame(), validation=frame())
    (tmp_path / "train.tsv").write_text('sentence\tlabel\n"open\t0\nmore\t1\nclose"\t0\n')
    assert tasks.load(COLA, tmp_path).train["sentence"].tolist() == ['"open', "more", 'close"']
