"""Each store gives the rows that its own client wrote, and stays as it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from isoviz import allowed_paths, vectors
from isoviz.__main__ import main
from isoviz.allowed_paths import Roots
from isoviz.errors import InputError
from isoviz.tables import stores
from isoviz.vectors import intake, reading
from isoviz.vectors.intake import ImportRequest
from isoviz.vectors.sets import VectorSet
from tests.stores.made import LABELS, POINTS, TEXTS, N, snapshot

SECRET = "geheim/1"


def _with(url: str, **options: object) -> str:
    kept, _, query = url.partition("?")
    parts = dict(part.split("=") for part in query.split("&") if part)
    return f"{kept}?" + "&".join(f"{name}={value}" for name, value in {**parts, **options}.items())


def _rows(read: VectorSet) -> list[int]:
    """Which of the rows were read; every cell is the one that was written."""
    rows = read.columns["id"].astype(int).tolist()
    np.testing.assert_array_equal(read.points, POINTS[rows])
    assert read.columns["text"].tolist() == [TEXTS[row] for row in rows]
    assert read.columns["label"].tolist() == [LABELS[row] for row in rows]
    return rows


def test_all_rows_and_a_sample(url: str, folder: Path | None) -> None:
    before = snapshot(folder) if folder else {}
    read = vectors.read(url)
    assert sorted(_rows(read)) == list(range(N))
    assert SECRET not in read.name and "reader" not in read.name and "/tmp" not in read.name
    points, columns = reading.named_array(url, None, "embeddings")  # in batches, through a temporary file
    np.testing.assert_array_equal(points, read.points)
    assert len(columns) == 1
    with pytest.warns(UserWarning, match=r"100 of 300 rows at random \(seed [34]\)"):
        sample = vectors.read(_with(url, sample=100, seed=3))
        again = vectors.read(_with(url, sample=100, seed=3))
        other = vectors.read(_with(url, sample=100, seed=4))
    assert "100 of 300 rows at random (seed 3)" in sample.name
    rows = _rows(sample)
    assert len(set(rows)) == 100 and sample.key == again.key
    assert rows == _rows(again) != _rows(other)
    assert 90 < np.mean(rows) < 210, "not the first ones"
    assert folder is None or snapshot(folder) == before, "it only reads"


def test_what_is_not_there(url: str) -> None:
    holds = "table" if "table=" in url else "collection"
    server = url.startswith("chroma://127")
    wrong = url.replace("/docs", "/nope") if server else _with(url, **{holds: "nope"})
    cases = {
        wrong: f"unknown {holds} of vectors 'nope'.*docs",
        _with(url, column="nope"): "unknown column of vectors 'nope'",
        _with(url, colour="red"): rf"unknown option of the address 'colour'.*{holds}",
        _with(url, sample="many"): "sample: expected a whole number, got 'many'",
    }
    if "postgresql" not in url:
        cases |= {url.replace("docs", "empty"): "no rows"}
    for address, message in cases.items():
        with pytest.raises(InputError, match=message) as caught:
            vectors.read(address)
        assert SECRET not in str(caught.value) and "\n" not in str(caught.value)


def test_a_visitor_may_name_what_the_operator_lists(url: str, folder: Path | None, tmp_path: Path) -> None:
    inside = Roots(
        (folder or tmp_path,), hosts=(("127.0.0.1", int(url.split(":")[-1].split("/")[0])),) if not folder else ()
    )
    allowed_paths.restrict_to(lambda: inside)
    summary = intake.import_file(ImportRequest(file=url))
    assert (summary.kind, summary.n) == ("vectors", N)
    kept = b"".join(content for _, content in snapshot(vectors.STORE.root).values())
    assert b"geheim" not in kept and b"reader" not in kept
    nearby = Roots(
        (tmp_path,), hosts=(("localhost", None), ("127.0.0.1", 1), ("0.0.1", None), ("127.0.0.1.example", None))
    )
    allowed_paths.restrict_to(lambda: nearby)
    with pytest.raises(InputError, match="ISOVIZ_STORE_HOSTS|cannot be read from the browser"):
        vectors.read(url)


def test_the_commands(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line in (
        ["measure", "--embeddings", url, "--labels", "label", "--sample", "120", "--seed", "1"],
        ["ruler", "--embeddings", url, "--labels", "label", "--sample", "120"],
        ["check", _with(url, sample=120), "--save", str(tmp_path / "baseline.json")],
        ["check", _with(url, sample=120), "--baseline", str(tmp_path / "baseline.json")],
        ["transform", "--chain", "mean_removal", "--in", url, "--out", str(tmp_path / "centred.npy")],
    ):
        assert main([*line, "--json"]) == 0, line
        out, err = capsys.readouterr()
        assert "geheim" not in out + err and "reader" not in out + err
        notes = json.loads(out)["warnings"]
        assert any("120 of 300 rows at random" in note for note in notes) == (line[0] != "transform"), notes
    assert np.load(tmp_path / "centred.npy").shape == POINTS.shape, "a file gets all rows"


def test_vectors_in_other_forms(url: str) -> None:
    """Half precision and plain arrays of PostgreSQL; bytes and JSON in ordinary tables of SQLite; a view that reads another file."""
    if url.startswith("postgresql"):
        for column, wide in {"half": 1e-3, "plain": 0}.items():
            read = vectors.read(_with(url, column=column))
            np.testing.assert_allclose(read.points, POINTS[read.columns["id"].astype(int)], atol=wide, rtol=wide)
        with pytest.raises(InputError, match=r"which column of vectors\? name one.*embedding, half, plain"):
            vectors.read(url.replace("&column=embedding", ""))
    elif url.startswith("sqlite"):
        assert sorted(_rows(vectors.read(_with(url, table="plain")))) == list(range(N))
        assert sorted(_rows(vectors.read(_with(url, table="written")))) == list(range(N))
    elif url.startswith("duckdb"):
        with pytest.raises(InputError, match="file system operations are disabled"):
            vectors.read(_with(url, table="outside"))
        with pytest.warns(UserWarning, match="10 rows without a vector are left out"):
            assert sorted(_rows(vectors.read(_with(url, table="gaps")))) == list(range(10, N))


@pytest.mark.parametrize("scheme", stores.catalogue())
def test_a_password_is_never_shown(scheme: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Not by the parser, the client, argparse, or where the password has characters that it should not have."""
    port = 9  # nobody listens there
    for word in (
        "geheim",
        "geheim%00",
        "ge@geheim",
        "1/geheim",
        "1?geheim",
        "1#geheim",
        "geheim%0a",
        "[geheim",
        "geheim:1:2",
    ):
        address = f"{scheme}://wilhelmine:{word}@127.0.0.1:{port}/docs"
        for line in (
            ["measure", "--embeddings", address],
            ["check", address, "--save", "x"],
            ["measure", address],
            [address],
        ):
            try:
                code: object = main(line)
            except SystemExit as ended:
                code = ended.code
            out, err = capsys.readouterr()
            notes = err.count("note: Api key is used with an insecure connection")  # Qdrant's
            assert code == 2 and not out and err.count("\n") == 1 + notes, (line, err)
            assert "geheim" not in err and "wilhelmine" not in err and "Traceback" not in err, err


def test_no_name_is_looked_up_before_it_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(*_: object, **__: object) -> None:
        raise AssertionError("a request")

    monkeypatch.setattr("socket.getaddrinfo", reached)
    monkeypatch.setattr("socket.create_connection", reached)
    allowed_paths.restrict_to(lambda: Roots((), hosts=(("db.example.org", None), ("db.example.org", 7000))))
    for host in (
        "example.org",
        "a.db.example.org",
        "db.example.org:1",
        "db.example.org,evil.org",
        "",
        "127.0.0.1",
        "[::1]",
    ):
        for scheme in ("postgresql", "chroma", "qdrant", "milvus"):
            with pytest.raises(
                InputError, match="ISOVIZ_STORE_HOSTS|expected an address|cannot be read from the browser"
            ):
                vectors.read(f"{scheme}://{host}/docs")
    for port in ("", ":5432", ":7000"):  # what is listed is reached
        with pytest.raises(InputError, match="could not translate|cannot be read|failed to resolve"):
            vectors.read(f"postgresql://db.example.org{port}/docs")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"needs the package duckdb; run `pip install 'isoviz-embeddings\[duckdb\]'`"):
        vectors.read("duckdb:" + __file__)
