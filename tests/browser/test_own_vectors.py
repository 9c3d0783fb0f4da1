"""The page without a server: each format, faulty files, and its numbers against the engine, from a file and with the network off."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page, expect

import isoviz
from dashboard.components.lab import source as lab_source
from dashboard.export import standalone
from factory import static_encoder
from isoviz import metrics
from isoviz.errors import InputError
from isoviz.exploring import maps
from isoviz.metrics.measuring import reading_of
from isoviz.metrics.sample import Sample
from isoviz.readouts.cosines import neighbour_recall
from isoviz.readouts.frontier import frontier
from isoviz.whatif import chains
from tests.browser.conftest import BRIGHTNESS, becomes
from tests.browser.test_playground_numbers import measured, transformed
from tests.hard_clouds import hard_clouds
from tests.tables import samples

RELATIVE, ABSOLUTE = 1e-6, 1e-9
ROWS, WIDTH = 240, 24
HARD = hard_clouds()
LISTEN = """() => {
  const heard = (globalThis.heard = { ruler: null, points: [] });
  heard.near = new Promise((resolve) => { heard.foundNear = resolve; });
  heard.frontier = new Promise((resolve) => { heard.foundFrontier = resolve; });
  const port = vectors.cloud.port;
  port.addEventListener("message", ({ data }) => {
    if (data.part === "ruler") heard.ruler = data.levels;
    if (data.part === "neighbours") heard.foundNear(data.found);
    if (data.part === "frontier" && data.point) heard.points.push(data.point);
    if (data.part === "frontier" && data.ended) heard.foundFrontier();
  });
}"""
STATE = """() => ({
  problem: document.querySelector(".ivv-problem").hidden ? null : document.querySelector(".ivv-problem").textContent,
  opened: vectors.opened && { n: vectors.opened.n, d: vectors.opened.d, columns: vectors.opened.columns },
  before: Object.fromEntries(Object.entries(vectors.cloud.numbers()).map(([name, { value }]) => [name, value])),
  after: Object.fromEntries(Object.entries(vectors.cloud.numbers("after")).map(([name, { value }]) => [name, value])),
  order: Array.from(vectors.cloud.drawn.order?.order ?? []),
  ruler: globalThis.heard.ruler,
})"""


@pytest.fixture(scope="module")
def lab(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    path = tmp_path_factory.mktemp("page") / "lab.html"
    path.write_text(standalone.render(start="vectors"), encoding="utf-8")
    context = chromium.new_context(offline=True)
    page = context.new_page()
    requests: list[str] = []
    errors: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.evaluate(LISTEN)
    yield page
    assert errors == []
    assert all(url.startswith(("file:", "blob:", "data:")) for url in requests), requests
    assert path.stat().st_size <= 2.5e6
    context.close()


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    rng = np.random.default_rng(5)
    spread = np.linspace(3, 0.3, WIDTH)
    return np.asarray(rng.standard_t(6, size=(ROWS, WIDTH)) * spread + rng.normal(size=WIDTH), dtype=np.float32)


def drop(page: Page, *paths: Path) -> dict[str, Any]:
    """What the page shows once it has read and computed the files, or refused them."""
    page.evaluate("() => { globalThis.ended = new Promise((done) => { globalThis.dropped = done; }); }")
    page.evaluate(
        "() => { const open = vectors.open.bind(vectors); vectors.open = (files) => open(files).then(dropped); }"
    )
    page.set_input_files(".ivv-file", list(paths))
    page.evaluate("ended")
    page.evaluate("delete vectors.open")
    return dict(page.evaluate(STATE))


# ------------------------------------------------------------------------------------------------------------ numbers


def close(actual: dict[str, Any], expected: dict[str, float]) -> None:
    for name, value in expected.items():
        shown = np.nan if actual[name] is None else actual[name]
        np.testing.assert_allclose(shown, value, RELATIVE, ABSOLUTE, equal_nan=True, err_msg=name)


def test_every_number_is_the_engines(lab: Page, tmp_path: Path, points: np.ndarray) -> None:
    labels = np.arange(ROWS) % 3
    np.save(tmp_path / "own.npy", points)
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(map(str, labels)), encoding="utf-8")
    found = drop(lab, tmp_path / "own.npy", tmp_path / "labels.csv")
    assert found["problem"] is None and (found["opened"]["n"], found["opened"]["d"]) == (ROWS, WIDTH)
    x = points.astype(np.float64)
    close(found["before"], measured(x, ROWS))
    assert sorted(found["order"]) == list(range(WIDTH))
    # unrelated pairs are those of different labels, as in the ruler of the engine
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = unit @ unit.T
    unrelated = cosines[np.triu(labels[:, None] != labels, 1)]
    np.testing.assert_allclose(found["ruler"], np.quantile(unrelated, (0.5, 0.95, 0.99, 0.999)), rtol=1e-6)
    lab.evaluate("vectors.askNeighbours(7)")
    np.fill_diagonal(cosines, -np.inf)
    near = lab.evaluate("heard.near")
    assert [row for row, _ in near] == np.argsort(-cosines[7])[:10].tolist()
    np.testing.assert_allclose([cosine for _, cosine in near], np.sort(cosines[7])[::-1][:10], rtol=1e-6)


SENTENCES = [
    "A cat sleeps on the sofa.",
    "The kitten naps on a couch, doesn't it?",
    "Stock prices fell sharply in 2008!",
    "Café Zoë's naïve CRÈME brûlée: 12.50€",
    "unbelievably hyper-parametrised; e.g. foo@bar.com",
    "tabs\tand  spaces \u200b and control\x07 characters",
    "中文 abc中文def, Ελληνικά ŁÓDŹ ß İstanbul",
    "a" * 120 + " short",
    "The market closed lower today.",
    "Shares dropped.",
    "Dogs bark at night.",
    "He reads a book — “quietly”.",
]


def test_typed_texts_become_the_vectors_of_the_distilled_table(lab: Page, tmp_path: Path) -> None:
    expected = static_encoder.encode(SENTENCES, *static_encoder.stored()).astype(np.float32)
    lab.evaluate("texts => { vectors.written.value = texts.join('\\n'); }", SENTENCES)
    lab.evaluate("vectors.openWritten()")
    shown = lab.evaluate(STATE)
    assert shown["opened"]["columns"]["text"] == [text.strip() for text in SENTENCES]
    encode = "Array.from(new StaticEncoder(vectors.encoder).encode(texts).values)"
    found = lab.evaluate(f"(texts) => {{ {lab_source.engine()}\nreturn {encode}; }}", SENTENCES)
    np.testing.assert_allclose(np.reshape(found, expected.shape), expected, rtol=0, atol=1e-6)
    unit = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    unrelated = (unit @ unit.T)[np.triu_indices(len(unit), 1)]
    np.testing.assert_allclose(shown["ruler"], np.quantile(unrelated, (0.5, 0.95, 0.99, 0.999)), rtol=1e-5)
    # a .txt of the same sentences, with an empty line and one in no word of which is known
    (tmp_path / "texts.txt").write_text("\n".join([*SENTENCES, "", "中文"]), encoding="utf-8")
    again = drop(lab, tmp_path / "texts.txt")
    assert (again["problem"], again["opened"]["n"]) == (None, len(SENTENCES))
    expect(lab.locator(".ivv-facts").first).to_contain_text("texts.txt, encoded by this page: 12 vectors of 128")
    expect(lab.locator(".ivv-facts").first).to_contain_text("2 of 14 rows are zero")
    lab.get_by_label("A sentence").fill("Prices on the stock market went down")
    lab.get_by_role("button", name="Find").click()
    expect(lab.locator(".ivv-text")).to_contain_text("Nearest to")
    query = static_encoder.encode(["Prices on the stock market went down"], *static_encoder.stored())[0]
    nearest = [SENTENCES[row] for row in np.argsort(-(unit @ query))[:3]]
    for place, text in enumerate(nearest):
        expect(lab.locator(".ivv-near li").nth(place)).to_contain_text(text)
    assert set(nearest) & {SENTENCES[2], SENTENCES[8]}
    lab.get_by_label("A sentence").fill("中文")
    lab.get_by_role("button", name="Find").click()
    expect(lab.locator(".ivv-text")).to_contain_text("knows no word of this sentence")
    expect(lab.locator(".ivv-near li")).to_have_count(0)
    # vectors from elsewhere have no query; too few sentences are refused in one line
    drop(lab, npy(tmp_path / "own", np.random.default_rng(1).normal(size=(40, 5))))
    expect(lab.get_by_label("A sentence")).to_be_hidden()
    lab.evaluate("() => { vectors.written.value = 'one'; vectors.openWritten(); }")
    expect(lab.get_by_role("alert")).to_have_text("Type at least two sentences, each on its own line.")


def test_a_notebook_shows_the_page_in_a_frame(chromium: Browser, tmp_path: Path) -> None:
    points = np.random.default_rng(2).normal(size=(60, 6))
    shown = isoviz.show(points, labels=np.arange(60) % 2, texts=[f"it's <b>row</b> & {i}" for i in range(60)])
    (tmp_path / "cell.html").write_text(f"<!doctype html>{shown._repr_html_()}", encoding="utf-8")
    page = chromium.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto((tmp_path / "cell.html").as_uri())
    frame = page.frame_locator("iframe")
    expect(frame.locator(".ivv-facts").first).to_contain_text("vectors: 60 vectors of 6 dimensions")
    expect(frame.locator(".ivv-levels dd").first).to_be_visible()
    frame.get_by_role("spinbutton", name="Row").fill("3")
    frame.get_by_role("spinbutton", name="Row").press("Enter")
    expect(frame.locator(".ivv-text")).to_contain_text("it's <b>row</b> & 2")
    for part in ("Lessons", "Playground", "Your vectors"):
        frame.get_by_role("button", name=part, exact=True).click()
    expect(frame.locator(".ivv-facts").first).to_be_visible()
    assert problems == [] and len(page.frames) == 2
    read = isoviz.vectors.read(shown.save(tmp_path / "saved.html"))
    np.testing.assert_array_equal(read.points, points)
    page.close()


def test_a_file_dropped_on_another_part_is_opened(lab: Page) -> None:
    lab.locator("#to-lessons").click()
    points = np.random.default_rng(2).normal(size=(40, 3))
    lab.evaluate(
        """(npy) => {
          const data = new DataTransfer();
          data.items.add(new File([Uint8Array.from(atob(npy), (letter) => letter.charCodeAt(0))], "anywhere.npy"));
          const dropped = new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
          document.body.dispatchEvent(dropped);
          if (!dropped.defaultPrevented) throw new Error("the browser would leave the page");
        }""",
        base64.b64encode(saved(points)).decode(),
    )
    # the page forbids eval, which Playwright's own waiting needs
    becomes(lab, lambda: lab.evaluate("vectors.opened?.name"), "anywhere.npy")
    assert lab.locator(".ivv-shown").is_visible() and lab.evaluate("location.hash") == "#vectors"


def of_a_set(points: np.ndarray) -> dict[str, float]:
    """The engine's numbers of people's own vectors: zero rows are left out, and the unbiased score says where it is none."""
    nonzero = points[points.any(axis=1)]
    x = nonzero if len(nonzero) else points
    unbiased = reading_of(metrics.get("isoscore_unbiased"), Sample(x), interval=False).value
    return measured(x, len(x)) | {"isoscore_unbiased": np.nan if unbiased is None else unbiased}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HARD)
def test_a_hard_cloud_has_the_engines_numbers_or_a_dash_with_the_reason(lab: Page, tmp_path: Path, name: str) -> None:
    found = drop(lab, npy(tmp_path / "own", HARD[name]))
    expected = of_a_set(HARD[name])
    if found["before"]["i1"] is None:  # eigenvectors of equal eigenvalues are arbitrary, and so are these two
        del expected["i1"], expected["i2"]
    close(found["before"], expected)
    try:
        levels = isoviz.ruler(HARD[name][HARD[name].any(axis=1)]).floor
    except InputError:
        assert found["ruler"] is None
    else:  # pairs of copies are not unrelated
        np.testing.assert_allclose(found["ruler"], [level.cosine for level in levels], rtol=1e-6, atol=1e-7)
    told_apart = not expected["mean_cosine"] > 1 - 5e-5
    expect(lab.get_by_text("The rows cannot be told apart")).to_have_count(0 if told_apart else 1)
    undefined = {name for name, value in expected.items() if np.isnan(value)}
    rows = lab.locator(".ivp-numbers [data-measure]:visible")
    dashes = """rows => rows.filter(({ cells: [, cell] }) => /^–|^cannot be estimated from/.test(cell.textContent) && cell.title)
      .map((row) => row.dataset.measure)"""
    becomes(lab, lambda: set(rows.evaluate_all(dashes)) - {"i1", "i2"}, undefined)  # the table is painted a frame later


def test_wide_vectors_have_all_numbers(lab: Page, tmp_path: Path) -> None:
    points = np.random.default_rng(6).normal(size=(60, 2_100)) * np.linspace(2, 0.3, 2_100)
    found = drop(lab, npy(tmp_path / "own", points.astype(np.float32)))
    assert (found["problem"], found["opened"]["d"]) == (None, 2_100)
    close(found["before"], of_a_set(points.astype(np.float32)))
    assert sorted(found["order"]) == list(range(2_100))
    expect(lab.locator(".ivv .ivp-plot-rho .ivp-legend")).to_contain_text("1 of 3 dimensions is shown")


def test_a_later_file_replaces_one_that_is_still_read_or_computed(lab: Page) -> None:
    rng = np.random.default_rng(2)
    first, last = (rng.normal(size=(2_000, 128)) * spread for spread in (np.ones(128), np.linspace(1, 9, 128)))
    expected, quick, during = lab.evaluate(
        """async ([first, last]) => {
          const file = (name, npy) => new File([Uint8Array.from(atob(npy), (letter) => letter.charCodeAt(0))], name);
          const [one, two] = [file("one.npy", first), file("two.npy", last)];
          const open = async (...files) => {
            await Promise.race([Promise.all(files.map((file) => vectors.open([file]))), late()]);
            return [vectors.opened.name, vectors.problem.hidden, vectors.cloud.numbers()];
          };
          const late = () => new Promise((done) => setTimeout(done, 20000));
          const large = new File([one, " ".repeat(2e7)], "one.npy");
          const found = [await open(two), await open(large, two)];
          await open(one);
          const computing = new Promise((done) => vectors.cloud.port.addEventListener("message", ({ data }) => data.done && done()));
          vectors.frontier.start.click();
          await computing;
          return [...found, await open(two)];
        }""",
        [base64.b64encode(saved(points.astype(np.float32))).decode() for points in (first, last)],
    )
    assert expected[:2] == ["two.npy", True] and quick == expected and during == expected


@pytest.mark.parametrize(
    "chain",
    [
        "mean_removal",
        "all_but_the_top:remove=2~unit_norm",
        "zca:strength=0.5",
        "truncation:keep=10~zca:strength=1,eps=0.3",
        "isobn:beta=1~batch_norm",
    ],
)
def test_a_transform_is_the_engines(lab: Page, tmp_path: Path, points: np.ndarray, chain: str) -> None:
    np.save(tmp_path / "own.npy", points)
    drop(lab, tmp_path / "own.npy")
    steps = lab_source.transforms(chains.read(chain.removesuffix("~unit_norm")))
    assert steps is not None
    steps += [{"slug": "unit_norm"}] * chain.endswith("~unit_norm")  # of the page alone
    lab.evaluate("(transforms) => vectors.cloud.set({ transforms })", steps)
    found = lab.evaluate(STATE)["after"]
    lab.evaluate("vectors.cloud.set({ transforms: Array(6).fill({ slug: 'centring' }) })")
    expect(lab.locator(".ivp-transforms > select").first).to_be_hidden()  # no more of them
    lab.evaluate("vectors.cloud.set({ transforms: [] })")
    expected = measured(transformed(points.astype(np.float64), steps), ROWS)
    if "zca" in chain:  # fitted on the rows that it is measured on
        expected["isoscore_unbiased"] = np.nan
    close(found, expected)


@pytest.mark.parametrize("rows", [ROWS, 10])  # 10: the eigenvectors of products of rows
def test_the_map_is_the_engines(lab: Page, tmp_path: Path, points: np.ndarray, rows: int) -> None:
    drop(lab, npy(tmp_path / "own", points[:rows]))
    map_choice = lab.get_by_label("Map", exact=True)
    canvas = lab.locator(".ivp-clouds canvas").first
    for view, words in (("plane", "two principal directions"), ("principal", "arrow keys turn it")):
        map_choice.select_option(view)
        expect(canvas).to_have_attribute("aria-label", re.compile(words))
        lab.evaluate("vectors.cloud.set({})")
        shown = lab.evaluate("Array.from(vectors.cloud.drawn['before picture'].coordinates)")
        found = np.reshape(shown, (rows, 3))
        found -= found.mean(axis=0)
        expected = maps.pca(points[:rows], 3).coordinates
        signs = np.sign((found * expected).sum(axis=0))
        np.testing.assert_allclose(found * signs, expected, atol=1e-4 * np.abs(expected).max())
    for scheme, dark in (("dark", True), ("light", False)):
        lab.emulate_media(color_scheme=scheme)
        becomes(lab, lambda: canvas.evaluate(BRIGHTNESS) < 0.5, dark)


def cosines_of(points: np.ndarray) -> np.ndarray:
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = (unit @ unit.T).astype(np.float32)
    np.fill_diagonal(cosines, -np.inf)
    return cosines


def share(before: np.ndarray, after: np.ndarray) -> float:
    """Of a row's 10 nearest rows, those that are still among them; of tied ones, on average over all orders."""
    near, last = before >= np.sort(before)[-10] - 1e-6, np.sort(after)[-10]
    above, tied = after > last + 1e-6, np.abs(after - last) <= 1e-6
    return float((near & above).sum() + (near & tied).sum() * (10 - above.sum()) / tied.sum()) / 10


def test_each_point_of_the_frontier_is_the_engines_and_its_python_runs(
    lab: Page, tmp_path: Path, points: np.ndarray
) -> None:
    np.save(tmp_path / "own.npy", points)
    drop(lab, tmp_path / "own.npy")
    lab.evaluate(LISTEN)  # not to the frontier of another test
    lab.get_by_role("button", name="Compute the frontier").click()
    lab.evaluate("heard.frontier")
    found = lab.evaluate("heard.points")
    assert len(found) == 3 * 3 * 2  # rotations × types × widths of at least 8
    lab.locator(".ivv-pareto button").first.click()
    shown = lab.locator(".ivv-code").inner_text()
    before = cosines_of(points.astype(np.float64))
    engine = {(one.rotation, one.bits, one.dimensions): one.values["neighbours"] for one in frontier(points).ways}
    for point in found:
        np.testing.assert_allclose(point["recall"], engine[point["rotation"], point["bits"], point["k"]], atol=1e-4)
        code = lab.evaluate("(point) => vectors.pythonFor(point)", point)
        scope: dict[str, Any] = {}
        exec(code.replace('"own.npy"', repr(str(tmp_path / "own.npy"))), scope)
        assert scope["compressed"].shape == (ROWS, point["k"])
        after = cosines_of(scope["compressed"])
        expected = neighbour_recall([(before, after)]).value or np.nan
        np.testing.assert_allclose(point["recall"], expected, RELATIVE, err_msg=code)
        shares = [share(*row) for row in zip(before, after, strict=True)]
        np.testing.assert_allclose(point["error"], np.std(shares, ddof=1) / np.sqrt(ROWS), rtol=1e-5)
        assert point["bytes"] == np.ceil(point["k"] * point["bits"] / 8)
    assert shown in {lab.evaluate("(point) => vectors.pythonFor(point)", point) for point in found}
    best = lab.locator(".ivv-pareto tbody tr").count()
    smaller = [max(other["recall"] for other in found if other["bytes"] <= point["bytes"]) for point in found]
    assert best == len({point["bytes"] for point, most in zip(found, smaller, strict=True) if point["recall"] == most})
    table = csv(tmp_path / "own", points)
    drop(lab, table)
    code = lab.evaluate("(point) => vectors.pythonFor(point)", found[-1])
    again: dict[str, Any] = {}
    exec(code.replace('"own.csv"', repr(str(table))), again)
    np.testing.assert_allclose(again["compressed"], scope["compressed"], atol=1e-4)


def test_a_wrong_row_no_cosine_and_a_cancelled_file(lab: Page, tmp_path: Path, points: np.ndarray) -> None:
    drop(lab, npy(tmp_path / "own", points))
    row, near = lab.get_by_label("Row", exact=True), lab.locator(".ivv-near li")
    for typed, count, told in (
        ("7", 10, "row 7"),
        ("9999", 0, f"{ROWS}"),
        ("7", 10, "row 7"),
        ("0", 0, f"{ROWS}"),
        ("", 0, ""),
    ):
        row.fill(typed)
        row.press("Enter")
        expect(near).to_have_count(count)
        expect(lab.locator(".ivv-text")).to_have_text(re.compile(f"{told}$"))
    lab.get_by_label("A cosine of").fill("")
    expect(lab.locator(".ivv-reading")).to_be_empty()
    numbers = lab.evaluate(STATE)["before"]
    content = base64.b64encode(saved(points[:50])).decode()
    lab.evaluate(
        """(npy) => {
          const bytes = Uint8Array.from(atob(npy), (letter) => letter.charCodeAt(0));
          vectors.open([new File([bytes, " ".repeat(2e7)], "second.npy")]);
          const cancel = vectors.progress.querySelector("button");
          cancel.focus();
          cancel.click();
        }""",
        content,
    )
    assert lab.evaluate("document.activeElement.className") == "ivv-file"
    lab.evaluate("vectors.cloud.set({})")
    found = lab.evaluate(STATE)
    assert found["opened"]["n"] == ROWS and found["before"] == numbers and lab.locator(".ivv-shown").is_visible()


# ------------------------------------------------------------------------------------------------------------ formats


def npy(path: Path, points: np.ndarray) -> Path:
    np.save(path.with_suffix(".npy"), points)
    return path.with_suffix(".npy")


def fortran(path: Path, points: np.ndarray) -> Path:
    return npy(path, np.asfortranarray(points.astype(">f8")))


def half(path: Path, points: np.ndarray) -> Path:
    return npy(path, points.astype(np.float16))


def frame_of(points: np.ndarray) -> pd.DataFrame:
    table = pd.DataFrame(points, columns=[f"x{j}" for j in range(points.shape[1])])
    return table.assign(
        label=np.array(["a", "ß"])[np.arange(len(points)) % 2], text=[f'say "{i}",\nthen' for i in range(len(points))]
    )


def csv(path: Path, points: np.ndarray) -> Path:
    frame_of(points).to_csv(path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def semicolons(path: Path, points: np.ndarray) -> Path:
    frame_of(points).to_csv(path.with_suffix(".csv"), sep=";", decimal=",", encoding="utf-8-sig")
    return path.with_suffix(".csv")


def sparse_jsonl(path: Path, points: np.ndarray) -> Path:
    frame = frame_of(points)
    frame.loc[0, "label"] = None
    lines = [json.dumps(row.dropna().to_dict()) for _, row in frame.iterrows()]
    path.with_suffix(".jsonl").write_text("\n".join(lines), encoding="utf-8")
    return path.with_suffix(".jsonl")


def parquet(path: Path, points: np.ndarray) -> Path:
    table = frame_of(points)[["label", "text"]].assign(embedding=list(points))
    table.to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def wide_parquet(path: Path, points: np.ndarray) -> Path:
    frame_of(points).assign(note=None).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def text_of(path: Path, suffix: str, lines: list[str]) -> Path:
    content = "\n".join([*lines, ""]).encode()
    path = path.with_suffix(suffix)
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    return path


def words_of(points: np.ndarray, blank: str = " ") -> list[str]:
    return [f"w{i}{' .' * (i == 3)}{blank}" + blank.join(map(repr, row)) for i, row in enumerate(points.tolist())]


def packed_glove(path: Path, points: np.ndarray) -> Path:
    return text_of(path, ".txt.gz", words_of(points))


def openai_batch(path: Path, points: np.ndarray) -> Path:
    answers = ({"data": [{"index": 0, "embedding": row}]} for row in points.tolist())
    lines = [json.dumps({"custom_id": f"w{i}", "response": {"body": body}}) for i, body in enumerate(answers)]
    return text_of(path, ".jsonl", lines)


def cells(cell: Callable[[np.ndarray], str]) -> Callable[[Path, np.ndarray], Path]:
    def write(path: Path, points: np.ndarray) -> Path:
        return text_of(path, ".csv", ["user_id;v", *(f'{i + 7};"{cell(row)}"' for i, row in enumerate(points))])

    return write


def excel(path: Path, points: np.ndarray) -> Path:
    rows = [";".join(map(repr, row)).replace(".", ",") for row in points.tolist()]
    return text_of(path, ".csv", ["sep=;", ";".join(f"x{j}" for j in range(WIDTH)), *rows])


CELLS: dict[str, Callable[[np.ndarray], str]] = {
    "bars": lambda row: "|".join(map(repr, row.tolist())),
    "numpy": lambda row: "[" + "\n ".join(map(repr, row.tolist())) + "]",
    "base64": lambda row: base64.b64encode(row.tobytes()).decode(),
}
WRITERS = (fortran, half, csv, semicolons, sparse_jsonl, parquet, wide_parquet, packed_glove, openai_batch, excel)
READ = ("npy", "npz", "safetensors", "csv", "tsv", "jsonl", "json", "words", "word2vec", "fvecs", "fbin")
"""Formats of the catalogue that the page reads too, beside `WRITERS`."""


@pytest.mark.parametrize("slug", READ)
def test_a_format_of_the_catalogue_is_read(lab: Page, tmp_path: Path, slug: str) -> None:
    ending = {"words": ".txt", "word2vec": ".bin"}.get(slug, f".{slug}")
    (tmp_path / f"own{ending}").write_bytes(samples.SAMPLES[slug]())
    found = drop(lab, tmp_path / f"own{ending}")
    assert found["problem"] is None and (found["opened"]["n"], found["opened"]["d"]) == samples.POINTS.shape
    expected = metrics.isoscore(samples.POINTS.astype(np.float64))
    np.testing.assert_allclose(found["before"]["isoscore"], expected, rtol=1e-6)
    if slug in ("csv", "tsv", "jsonl", "words", "word2vec"):
        assert found["opened"]["columns"]["id"] == samples.WORDS


@pytest.mark.parametrize(
    "write",
    [
        *(pytest.param(one, id=one.__name__) for one in WRITERS),
        *(pytest.param(cells(one), id=id) for id, one in CELLS.items()),
    ],
)
def test_other_ways_to_write_a_format_are_read(
    lab: Page, tmp_path: Path, points: np.ndarray, write: Callable[[Path, np.ndarray], Path]
) -> None:
    few = points[:60]
    found = drop(lab, write(tmp_path / "own", few))
    assert found["problem"] is None and (found["opened"]["n"], found["opened"]["d"]) == few.shape
    expected = metrics.isoscore((few.astype(np.float16) if write is half else few).astype(np.float64))
    np.testing.assert_allclose(found["before"]["isoscore"], expected, rtol=1e-6)
    columns = found["opened"]["columns"]
    if write in (csv, semicolons, sparse_jsonl, parquet, wide_parquet):
        assert columns["label"] == ["" if write is sparse_jsonl else "a", "ß", *["a", "ß"] * 29]
        assert columns["text"][3] == 'say "3",\nthen'
    if write in (packed_glove, openai_batch):
        assert columns["id"][:3] == ["w0", "w1", "w2"]


def saved(points: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, points, **options)
    return stream.getvalue()


def bomb() -> bytes:
    """Unpacks to 600 MB of zeros."""
    stream = io.BytesIO()
    header = saved(np.zeros((20_000, 1), dtype=np.float32))[:128]
    with (
        zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.npy", "w", force_zip64=True) as entry,
    ):
        entry.write(header)
        for _ in range(600):
            entry.write(bytes(2**20))
    return stream.getvalue()


def faulty_cell() -> bytes:
    return b"a,b\n1,2\n3,x\n4,5\n6,7\n"


def tensor_file(shape: tuple[int, ...], start: int = 0, end: int = 1440) -> bytes:
    """60 × 6 numbers whose header says something else."""
    header = json.dumps({"x": {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(1440)


def parquet_file(rows: list[Any], **options: Any) -> bytes:
    return pd.DataFrame({"v": rows}).to_parquet(**options)


def with_nan() -> np.ndarray:
    points = np.ones((20, 3), dtype=np.float32)
    points[4, 1] = np.nan
    return points


BAD: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "empty": ("own.npy", lambda: b"", "is empty"),
    "no format": ("own.npy", lambda: b"hello, world", "is text"),
    "cut off": ("own.npy", lambda: saved(np.ones((50, 4)))[:600], "cut off"),
    "objects": ("own.npy", lambda: saved(np.array([[1, None]], dtype=object), allow_pickle=True), "Python objects"),
    "not finite": ("own.npy", lambda: saved(with_nan()), "row 5, dimension 2"),
    "one row": ("own.npy", lambda: saved(np.ones((1, 4))), "single row"),
    "too large": ("own.npy", lambda: saved(np.full((3, 4), 1e90)), "row 1, dimension 1"),
    "too many rows": ("own.npy", lambda: saved(np.ones((20_001, 2), dtype=np.float32)), "up to 20000 rows of"),
    "one dimension": ("own.npy", lambda: saved(np.ones((30, 1))), "one number per row"),
    "one column": ("own.csv", lambda: b"name,size\na,1\nb,2\n", "column 'size'"),
    "cut by numpy": ("own.csv", lambda: b"id,v\n1,[0.1 0.2 ... 0.3 0.4]\n2,[0.1 0.2 ... 0.3 0.4]\n", "wrote '...'"),
    "two bad rows": ("own.jsonl", lambda: b'{"v": [1, 2]}\n{"v": [null]}\n{"v": [3, null]}\n', "2 of 3 rows"),
    "unknown kind": ("own.pt", lambda: b"\x80\2}q", "another kind"),
    "zip bomb": ("own.npz", bomb, "more than 512 MB"),
    "cut-off tensors": ("own.safetensors", lambda: (10**9).to_bytes(8, "little") + b"{}", "cut off"),
    "bad cell": ("own.csv", faulty_cell, "row 2, column 'b'"),
    "no JSON": ("own.jsonl", lambda: b'{"v": [1, 2]}\n{"v": [1, 2\n', "line 2"),
    "ragged": ("own.jsonl", lambda: b'{"v": [1, 2]}\n{"v": [1, 2, 3]}\n', "row 2, column 'v': 3 numbers"),
    "cut-off parquet": ("own.parquet", lambda: b"PAR1" + bytes(40), "cannot be read"),
    "negative shape": ("own.npy", lambda: saved(np.ones((60, 6))).replace(b"(60, 6)", b"(-6, 6)"), "not understood"),
    "more rows than bytes": ("own.safetensors", lambda: tensor_file((70, 6)), "is damaged: array 'x'"),
    "more cells": ("own.csv", lambda: b"a,b\n1,2\n3,4,5\n", "row 2 has more cells"),
    "open quote": ("own.csv", lambda: b'a,b\n1,2\n3,"4\n', "row 2: Quoted"),
    "mostly empty": ("own.csv", lambda: b"a,b,c\n" + b"1,2,\n" * 80 + b"3,4,5\n", "row 1, column 'c': it is empty"),
    "bad decimal comma": ("own.csv", lambda: b"a;b\n1,5;2,5\n3;4\n1.234,5;2\n", "row 3, column 'a': '1.234,5'"),
    "Latin-1": ("own.csv", lambda: "label,a\né,1\nb,2\n".encode("latin-1"), "is not UTF-8; save it as UTF-8"),
    "null list": (
        "own.parquet",
        lambda: parquet_file([[1.0, 2.0], None, [3.0, 4.0]]),
        "row 2, column 'v': it is empty",
    ),
    **{
        codec: ("own.parquet", partial(parquet_file, [[1.0], [2.0]], compression=codec), "with Snappy")
        for codec in ("zstd", "brotli")
    },
    "labels alone": ("own.csv", lambda: b"label\na\nb\n", "no vectors"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_faulty_file_is_refused_in_one_line_and_the_page_lives_on(lab: Page, tmp_path: Path, name: str) -> None:
    file, content, words = BAD[name]
    (tmp_path / file).write_bytes(content())
    found = drop(lab, tmp_path / file)
    file = file.removesuffix(".gz")
    assert words in found["problem"] and file in found["problem"] and "\n" not in found["problem"]
    assert found["problem"].count(file) == 1
    good = drop(lab, npy(tmp_path / "good", np.eye(12, 5, dtype=np.float32) + np.arange(12)[:, None]))
    assert good["problem"] is None and good["opened"]["n"] == 12


def test_labels_of_another_length_are_refused_and_long_ones_are_cut(
    lab: Page, tmp_path: Path, points: np.ndarray
) -> None:
    (tmp_path / "labels.txt").write_text("one\ntwo\n", encoding="utf-8")
    found = drop(lab, npy(tmp_path / "own", points), tmp_path / "labels.txt")
    assert "labels.txt: 2 texts for 240 vectors" in found["problem"]
    np.save(tmp_path / "labels.npy", np.array(["a" * 50_000, "ß"])[np.arange(ROWS) % 2])
    found = drop(lab, npy(tmp_path / "own", points), tmp_path / "labels.npy")
    assert found["opened"]["columns"]["label"][1::2] == ["ß"] * (ROWS // 2)
    assert len(lab.evaluate("vectors.nameOf(0)")) < 400  # a neighbour's line
    assert lab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert all(len(text) < 60 for text in lab.locator(".ivv-label").all_text_contents())


@pytest.mark.parametrize("texts", [True, False])
def test_the_command_puts_vectors_into_the_page(
    chromium: Browser, tmp_path: Path, points: np.ndarray, texts: bool
) -> None:
    parquet(tmp_path / "own", points)
    out = tmp_path / "lab.html"
    command = [sys.executable, "-m", "isoviz", "page", "--out", str(out), "--embeddings", str(tmp_path / "own.parquet")]
    done = subprocess.run(command + ["--without-texts"] * (not texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.goto(out.as_uri())
    page.evaluate("vectors.whenSettled && new Promise((done) => document.addEventListener('lab:settled', done))")
    found = page.evaluate(STATE.replace("globalThis.heard.ruler", "null"))
    assert (found["opened"]["n"], found["opened"]["d"]) == points.shape
    assert set(found["opened"]["columns"]) == ({"label", "text"} if texts else {"label"})
    again = isoviz.vectors.read(out)  # a page opens in the app, too
    np.testing.assert_array_equal(again.points, points)
    assert ("text" in again.columns) == texts and again.columns["label"].tolist()[:2] == ["a", "ß"]
    np.testing.assert_allclose(
        found["before"]["isoscore"], isoviz.metrics.isoscore(points.astype(np.float64)), rtol=1e-6
    )
    context.close()
