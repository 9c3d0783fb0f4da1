"""A fixed budget of bad input, the same on every machine, of which `make test` has the files; `benchmarks/fuzz.py` draws thousands."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import strategies as st

from isoviz import input_validation
from isoviz.errors import LONGEST, InputError, listed, one_line, shortened
from isoviz.models import sources
from tests.fuzzing import addresses, command_line, files
from tests.fuzzing.collecting import collect
from tests.tiny import TinyModels


@pytest.fixture
def sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with every kind of file; outputs without a path are written beside it."""
    folder = tmp_path / "box"
    files.fill(folder)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `sandbox`, for lines that are all refused and so change nothing."""
    folder = tmp_path_factory.mktemp("known") / "box"
    files.fill(folder)
    return folder


@pytest.mark.nightly
def test_command_lines_end_in_one_line(sandbox: Path) -> None:
    outcome = collect(command_line.words(sandbox), lambda line: command_line.check(line, sandbox), 120)
    assert not outcome.faults, str(outcome)
    assert outcome.answers["refused"] > 40 and outcome.answers["reached"] + outcome.answers["done"] > 10


KNOWN = (
    "train --model {long}",
    "train --model ~nosuchuser",
    "train --lr 1e309",
    "train --epochs {digits}",
    "train --set lam=1,,2 --method istar",
    "train --method istar --set lam=nan",
    "train --data {box} --task demo/acceptability",
    "measure --data {box} --model demo/tiny-bert",
    "sweep --grid lam=1,,2 --method istar",
    "train --store ~nosuchuser/x",
    "train --store postgresql://127.0.0.1:port/db",
    "runs list --store {box}/points.npy",
    "runs list --store {box}/queue.npy",
    "links show --store {box}/good.csv",
    "app --port 99999",
    "study run x --out {long}",
    "measure --embeddings {box}/promise0.npy",
    "measure --embeddings {box}/deep.safetensors",
    "measure --embeddings {box}/loop.npy",
    "measure --embeddings {box}/queue.npy",
    "measure --embeddings {long}",
    "measure --embeddings \udcff",
    "train --task own --text text --label label --data {box}/wide.csv",
    "train --task own --text text --label x --data {box}/deep.jsonl",
    "train --task own --text text --label label --data {box}/magic.parquet",
    "train --task glue/cola --data {box}/folders",
    "transform --chain zca --in {box}/points.npy --out {box}",
    "transform --chain zca --in {box}/points.npy --out {box}/no/x.npy",
    "transform --chain zca --in {box}/points.npy --out {box}/device.npy",
    "measure --embeddings {box}/device.npy",
    "measure --embeddings ",
    "train --data=",
    "transform --chain=-- --in x --out y.npy",
    "train --model a\nb",
    "train --frobnicate {long}",
    "{long}",
)


@pytest.mark.parametrize("line", KNOWN)
def test_inputs_that_once_ended_in_a_traceback(line: str, unchanged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(unchanged.parent)
    places = {"box": unchanged, "long": "x" * 5000, "digits": "9" * 400}
    assert command_line.check([word.format(**places) for word in line.split(" ")], unchanged) == "refused", line


def test_files_are_read_or_refused(tmp_path: Path) -> None:
    outcome = collect(st.tuples(files.damaged(), files.columns), lambda case: files.check(case, tmp_path), 100)
    assert not outcome.faults, str(outcome)
    assert outcome.answers[0] and outcome.answers[3]


def test_whole_files_are_read(tmp_path: Path) -> None:
    chosen = {"text": "text", "label": "label"}
    for name in ("points.npy", "points.npz", "points.safetensors", "hdf5.h5", "faiss.faiss", "torch.pt", "fbin.fbin"):
        assert files.check(((name, dict(files.WHOLE)[name]), chosen), tmp_path) == 0
    for name in ("good.csv", "good.tsv", "good.jsonl", "good.parquet"):  # a table of texts
        assert files.check(((name, dict(files.WHOLE)[name]), chosen), tmp_path) == 2


@pytest.mark.parametrize(
    "name, size", [("num_hidden_layers", 10**9), ("intermediate_size", 10**6), ("vocab_size", 10**7)]
)
def test_sizes_that_no_weights_can_have_are_refused_before_anything_is_built(
    name: str, size: int, tmp_path: Path, tiny_models: TinyModels
) -> None:
    with pytest.raises(InputError, match=f"has {name} = {size}" if size > 10**8 else f"has {name} = {size:,}"):
        shutil.copytree(tiny_models("bert"), tmp_path / "copy")
        config = tmp_path / "copy" / "config.json"
        config.write_text(json.dumps(json.loads(config.read_text()) | {name: size}))
        sources.resolve(str(tmp_path / "copy"))


def test_shortened_text_is_one_printable_line() -> None:
    assert shortened("a\nb\0c\ud800\u202e") == "a b\\x00c\\ud800\\u202e"
    assert len(shortened("x" * 10**7)) == 60 and len(shortened("\0" * 10**6)) <= 60
    assert listed(map(str, range(3))) == "0, 1, 2"
    many = listed(f"column{number}" for number in range(300_000))
    assert many.endswith("(300,000 in total)") and len(many) < 200
    message = str(InputError(f"model: no '{'x' * 10_000}' (allowed: this, that)"))
    assert len(message) < LONGEST and message.endswith("(allowed: this, that)")
    assert len(one_line("word " * 1000)) <= LONGEST


def test_paths_that_no_disk_can_hold(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (
        "x" * 256,
        "d/" * 3000,
        "a\0b",
        "~nosuchuser/x",
        "\ud800",
        str(tmp_path / "loop"),
        str(tmp_path / "loop" / "x"),
    ):
        with pytest.raises(InputError) as refusal:
            input_validation.path(path, "data")
        assert refusal.value.field == "data" and str(refusal.value).startswith("data: ")
    assert input_validation.path(tmp_path / "absent" / "too", "data").name == "too"
    assert input_validation.folder(tmp_path / "absent", "data") is None


def test_numbers_are_finite_and_fit(tmp_path: Path) -> None:
    assert input_validation.number("1e-8") == 1e-8 and input_validation.whole_number("-3") == -3
    for text in ("1e309", "nan", "-inf", "", "9" * 400, "x"):
        with pytest.raises(ValueError, match="finite"):
            input_validation.number(text)
    for text in ("9" * 400, "9" * 5000, "2147483648", "1.5", ""):
        with pytest.raises(ValueError, match="whole number"):
            input_validation.whole_number(text)


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_addresses_show_no_exception_box(sandbox: Path) -> None:
    with addresses.without_jobs():
        known = addresses.fill(sandbox.parent / "home")
        outcome = collect(addresses.addresses(known, sandbox), addresses.check, 30)
    assert not outcome.faults, str(outcome)
