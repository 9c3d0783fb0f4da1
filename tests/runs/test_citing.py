"""What to cite: every declaration has an entry; a set of runs has the union of its entries."""

from __future__ import annotations

import re

from isoviz import bibliography, methods, metrics, tasks
from isoviz.models import families
from isoviz.posthoc import catalogue as transforms
from isoviz.runs.citing import bibtex_of

PAPERS = [method.paper for method in methods.catalogue().values() if method.paper]
PAPERS += [paper for one in transforms().values() for paper in (one.paper, *one.variants.values())]


def test_every_entry_is_complete():
    entries = bibliography.entries()
    assert len(entries) > 30 and list(entries) == sorted(entries)
    for key, entry in entries.items():
        assert entry.count("{") == entry.count("}"), key
        fields = dict(re.findall(r"^  (\w+)=\{(.*)\},?$", entry, flags=re.MULTILINE))
        assert {"title", "author", "year"} <= fields.keys(), key
        assert fields["year"] in key, key
        assert ("journal" in fields) == entry.startswith("@article"), key
        assert ("booktitle" in fields) == entry.startswith("@inproceedings"), key
        assert len(re.findall(r"^  \w+=\{", entry, flags=re.MULTILINE)) == len(fields), key


def test_every_declared_key_has_an_entry_and_none_is_idle():
    declared = {key for task in tasks.catalogue().values() for key in task.cites}
    declared |= {key for keys in families.CITES.values() for key in keys}
    measured = {metric.paper.key for metric in metrics.catalogue().values()}
    of_papers = {key for paper in PAPERS for key in bibliography.parse(paper.bibtex)}
    assert set(bibliography.entries()) == declared | measured | of_papers


def test_everything_from_a_paper_cites_it():
    for task in tasks.catalogue().values():
        assert bool(task.cites) != task.generated, task.slug
    assert families.CITES.keys() >= {*families.CLASSIFIERS, *families.SEQ2SEQ}


def test_the_union_of_some_runs():
    tasks_and_methods = {"glue/rte": "isobn+istar", "glue/cola": "baseline", "own": "baseline"}
    runs = [("demo/tiny-bert", task, method) for task, method in tasks_and_methods.items()]
    entries = bibtex_of(runs, ["isoscore_unbiased", "no such measure"])
    assert list(entries) == sorted(entries)
    assert set(entries) == {
        "zhou2021isobn", "rudman2024istar", "dagan2006pascal", "barhaim2006second", "giampiccolo2007third",
        "bentivogli2009fifth", "wang2019glue", "warstadt2019neural", "devlin2019bert", "himeno2014estimations",
    }  # fmt: skip
    assert entries["wang2019glue"].startswith("@inproceedings{wang2019glue,") and entries["wang2019glue"].endswith(
        "\n}"
    )
