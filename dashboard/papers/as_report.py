"""A study's result as a report."""

from __future__ import annotations

from typing import Final

from dashboard.papers import drawing
from dashboard.papers.frames import as_frame, as_printed, comparison
from dashboard.report.document import Block, Code, Document, Heading, Numbers, Paragraph, Picture, Points
from dashboard.shared import wording
from isoviz import bibliography, metrics
from isoviz.studies import Result, Study, published
from isoviz.studies.papers import Source, place_names

_BASE: Final = ("isoscore",)


def document(source: Source, study: Study, result: Result) -> Document:
    """Verdicts, figures, published and measured numbers, tables, open points, provenance and citations."""
    origin = result.provenance
    runs = f", {len(result.runs)} of {result.planned} runs" if result.planned else ""
    about = f"{source.paper.short}, {study.place} · {study.title} · {origin.scale} scale{runs}, {origin.finished[:10]}"
    blocks: list[Block] = [Paragraph(study.summary)]
    if result.verdicts:
        lines = (f"{verdict.outcome.capitalize()}: {verdict.claim} {verdict.sentence}" for verdict in result.verdicts)
        blocks += [Heading("Do the claims hold?"), Points(tuple(lines))]
    if result.figures or result.tables:
        blocks.append(Heading("Measured"))
    for figure in result.figures:
        for panel in figure.panels:
            title = ": ".join(filter(None, (figure.title, panel.title.replace("\n", ", "))))
            blocks.append(Picture(title, drawing.panel(panel, alone=len(figure.panels) == 1), drawing.words(panel)))
    blocks += [Numbers(table.title, as_frame(table), tuple(table.notes)) for table in result.tables]
    if (compared := comparison(result.published)) is not None:
        blocks += [Heading("Published and measured"), Numbers("Each published number and ours", compared)]
    for place in place_names(study.place):
        if place.startswith("Table"):
            table = as_printed(published.of(source.slug, place))
            notes = tuple(f"{mark} {text}" for mark, text in table.doubts)
            blocks += [Heading(f"{place} as printed"), Numbers(f"{source.paper.short}, {place}", table.frame, notes)]
    blocks += [Heading("What the paper leaves open or contradicts"), Points(study.open_points)]
    if result.notes:
        blocks += [Heading("How it was measured"), *map(Paragraph, result.notes)]
    blocks += [Heading("Provenance"), *provenance(study, result)]
    blocks += [Heading("Citations"), Code("BibTeX", citations(source))]
    return Document(f"{source.name}, {study.place}", about, tuple(blocks))


def provenance(study: Study, result: Result) -> list[Block]:
    """The command that repeats the study, and the versions it ran with."""
    origin = result.provenance
    command = " ".join(["python -m isoviz study run", study.slug, "--scale", origin.scale, *origin.inputs])
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    settings = "\n".join(f"{name}: {value}" for name, value in origin.config.items())
    return [
        Code("Command to repeat it", command),
        Paragraph(f"{versions}. Computed in {wording.duration(origin.seconds)}, finished {origin.finished}.", "note"),
        Code("Settings", settings),
        *([Paragraph(f"Runs: {', '.join(result.runs)}.", "note")] if result.runs else []),
    ]


def citations(source: Source) -> str:
    """Citations of the paper and of IsoScore."""
    entries = bibliography.parse(source.paper.bibtex)
    known = bibliography.entries()
    catalogue = metrics.catalogue()
    entries |= {
        catalogue[slug].paper.key: known[catalogue[slug].paper.key]
        for slug in _BASE
        if catalogue[slug].paper.key in known
    }
    return "\n\n".join(entries.values())
