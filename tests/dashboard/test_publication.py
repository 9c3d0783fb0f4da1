"""A task's table as LaTeX: complete as it is, and nothing claimed that a reader could not check."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard.results import comparison, pivot, publication
from dashboard.results.publication import Published
from dashboard.shared import downloads, measures, tables
from isoviz import metrics
from isoviz.runs import comparisons
from isoviz.runs.rows import RunRow
from tests.dashboard.made_up import config, result, row

SIMPLE = {"majority": 0.5, "bag_of_words": 0.534, "copied": None}
THREE = [(0.70, 0.71, 0.81), (0.74, 0.73, 0.86), (0.68, 0.70, 0.79), (0.72, 0.72, 0.82)]
PAIRS = [(0.70, 0.71), (0.74, 0.73), (0.68, 0.70), (0.72, 0.72)]


def rows(pairs: list[tuple[float, ...]], **more: Any) -> list[RunRow]:
    methods = ("baseline", "isobn", "cosreg")
    return [
        row(f"{method}{seed}", config(method, seed, **more), outcome=result(value, 0.25, isoscore=0.1 + seed / 100))
        for seed, values in enumerate(pairs)
        for method, value in zip(methods, values, strict=False)
    ]


def table(runs: list[RunRow], **more: Any) -> Published:
    frame = tables.runs_frame(runs)
    compared = comparisons.compare(runs)
    return Published(
        task=runs[0].config.task,
        metric="accuracy",
        summary=tables.summary(frame),
        isotropy=[metrics.get("isoscore")],
        parts=compared.parts,
        tests=compared.tests,
        simple=SIMPLE,
        rows=(1000, 500),
        **more,
    )


def test_latex_is_a_complete_table() -> None:
    text = publication.latex(table(rows(PAIRS)))
    assert r"\label{tab:results-demo-acceptability-accuracy}" in text
    (caption,) = re.findall(r"\\caption\{(.*)\}", text)
    assert caption == (
        "Acceptability (demo): accuracy of demo/tiny-bert on 500 validation rows after training on 1,000. "
        r"Mean $\pm$ sample standard deviation over 4 seeds."
    )
    assert r"Method & Accuracy & n & Difference [95 \% interval] & p & IsoScore (classifier input) \\" in text
    assert r"Baseline & 0.710 $\pm$ 0.026 & 4 &  &  & 0.115 $\pm$ 0.013 \\" in text
    assert re.search(r"IsoBN \$\\beta\$ = 0\.5 & 0\.715 .*? & 4 & \+0\.005 \[\$-\$0\.0\d\d, 0\.0\d\d\] & 0\.", text)
    body = text.split(r"\midrule")
    assert len(body) == 3 and "Majority class & 0.500 &" in body[2] and "Bag of words & 0.534 &" in body[2]
    assert "Source, copied" not in text  # undefined here
    assert "Settings: epochs 3, learning rate 5e$-$5, batch size 32" in text
    assert "paired by seed" in text and "paired t-test" in text and "Holm" not in text  # of one comparison


def test_one_seed_claims_no_spread() -> None:
    text = publication.latex(table(rows(PAIRS[:1])))
    assert "One seed each, so there is no spread." in text
    assert r"$\pm$" not in text and "standard deviation" not in text and "& p &" not in text


def test_the_correction_and_the_warnings_are_below_the_table() -> None:
    warning = "Nothing was learned: no run beats bag of words (0.900). Do not compare."
    text = publication.latex(table(rows(THREE), warnings=[warning]))
    assert "Holm's correction for 2 comparisons" in text and rf"\footnotesize {warning}\par" in text


def test_printed_numbers_are_beside_the_papers_models() -> None:
    printed = table(rows(PAIRS, model="google-bert/bert-base-cased", task="glue/rte", data="x"))
    assert r"0.622 $\pm$ 0.005 (I-STAR, 001, Table 1)" in publication.latex(printed)
    line = next(line for line in printed.lines() if line["method"] == "isobn")
    assert publication.published_text(line) == "0.708 ± 0.016 (median; IsoBN, 002, Table 1)"
    assert "Published" not in publication.latex(table(rows(PAIRS)))


def test_text_of_data_is_escaped() -> None:
    made = table(rows(PAIRS, model="a_b & 100%"))
    assert r"a\_b \& 100\%" in publication.latex(made)


def test_every_measure_has_a_heading_in_latex() -> None:
    made = replace(table(rows(PAIRS)), isotropy=measures.of_runs())
    head = next(line for line in publication.latex(made).splitlines() if line.startswith("Method"))
    for metric in measures.of_runs():
        assert f"{downloads.latex_heading(metric)} (" in head


def exported() -> list[str]:
    """Every table that pages export as LaTeX: a task's, the comparison's, several tasks side by side."""
    runs = [*rows(THREE), row("s0", config("istar", 0, {"lam": -1}), outcome=result(0.71, 0.25))]
    (part,) = comparisons.compare(runs).parts
    side = pivot.made(tables.runs_frame(runs)).fillna("")
    cells = {downloads.latex_text(str(name)): side[name] for name in side}
    return [
        publication.latex(table(runs)),
        comparison._latex(comparison.as_frame(part), "I-STAR at λ = −1 ± 0 & more", ["100 % of a_b"]),
        downloads.latex_table(cells, "Accuracy", "l" * len(side.columns), label="tab:side"),
    ]


@pytest.mark.parametrize("text", exported(), ids=["results", "compared", "side by side"])
def test_every_export_is_plain_latex_of_a_regular_table(text: str) -> None:
    """What any TeX engine reads without further packages than booktabs."""
    assert text.isascii() and text.count("{") == text.count("}")
    (columns,) = re.findall(r"\\begin\{tabular\}\{([lrc]+)\}", text)
    lines = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(lines) > 2
    assert {len(re.findall(r"(?<!\\)&", line)) + 1 for line in lines if "multicolumn" not in line} == {len(columns)}


ENGINES = [engine for engine in ("tectonic", "pdflatex", "xelatex") if shutil.which(engine)]


@pytest.mark.skipif(not ENGINES, reason="no TeX here")
def test_it_compiles(tmp_path: Path) -> None:
    body = "\n".join(exported())
    text = rf"\documentclass{{article}}\usepackage{{booktabs}}\begin{{document}}{body}\end{{document}}"
    (tmp_path / "t.tex").write_text(text, encoding="utf-8")
    options = [] if ENGINES[0] == "tectonic" else ["-halt-on-error"]
    subprocess.run([ENGINES[0], *options, "t.tex"], cwd=tmp_path, check=True, capture_output=True, timeout=120)
    assert (tmp_path / "t.pdf").stat().st_size > 1000
