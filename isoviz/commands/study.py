"""`isoviz study`: list the papers' figures and tables, or compute one and compare it with the published numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final, Literal

from isoviz import input_validation, studies
from isoviz.commands.options import Quiet, StoreOption
from isoviz.commands.output import Answer, progress_bar
from isoviz.operations.operation import argument
from isoviz.studies import Inputs, Result
from isoviz.studies.inputs import SETTINGS
from isoviz.studies.study import ComputedStudy, Progress, TrainedStudy

OF_YOUR_OWN: Final = (
    "of your own: in place of the study's models, tasks and settings, where it allows that (`study list`)"
)


def list_studies() -> Answer:
    """All studies."""
    cards = [one.study.card(one.slug if one.study.parts else "") for one in studies.listed()]
    lines = []
    for card in cards:
        lines += [f"{card['slug']}  {card['paper']}, {card['place']}: {card['title']}", f"    {card['summary']}"]
        lines += [f"    --scale {scale}: {size}" for scale, size in card["scales"].items()]
        if card["takes"]:
            lines.append(f"    of your own: {', '.join(SETTINGS.get(name, f'--{name}') for name in card['takes'])}")
    return Answer({"studies": cards}, "\n".join(lines))


def run(
    name: Annotated[str, argument("of the study", "NAME", positional=True)],
    scale: Annotated[Literal["quick", "full"], argument("size")] = "quick",
    out: Annotated[str | None, argument("write the result there, as NAME.json", "DIR")] = None,
    model: Annotated[
        tuple[str, ...],
        argument(
            "bundled model, local directory or hub id; NAME is what the record calls it",
            "[NAME=]MODEL",
            section=OF_YOUR_OWN,
        ),
    ] = (),
    tasks: Annotated[tuple[str, ...], argument("tasks of the catalogue", "TASK", section=OF_YOUR_OWN)] = (),
    data: Annotated[tuple[str, ...], argument("the files of a task", "TASK=DIR", section=OF_YOUR_OWN)] = (),
    seeds: Annotated[
        tuple[int, ...], argument("seeds of the runs; a verdict needs three", "N", section=OF_YOUR_OWN)
    ] = (),
    max_train: Annotated[int | None, argument("training rows per run, at most", section=OF_YOUR_OWN)] = None,
    max_eval: Annotated[int | None, argument("validation rows per run, at most", section=OF_YOUR_OWN)] = None,
    epochs: Annotated[int | None, argument("of a run", section=OF_YOUR_OWN)] = None,
    batch_size: Annotated[int | None, argument("of a run", section=OF_YOUR_OWN)] = None,
    max_length: Annotated[int | None, argument("tokens of a text; longer texts are cut", section=OF_YOUR_OWN)] = None,
    learning_rate: Annotated[
        float | None, argument("peak learning rate of a run", "RATE", option="--lr", section=OF_YOUR_OWN)
    ] = None,
    quiet: Quiet = False,
    store: StoreOption = None,
) -> Answer:
    """Compute one, beside the published numbers."""
    given = locals()
    study = studies.get(name)
    study.check_scale(scale)
    settings = {setting: given[setting] for setting in SETTINGS}
    inputs = study.check_inputs(Inputs.read(model, tasks, data, seeds, **settings))
    folder = (
        input_validation.new_folder(out, "out") if out else None
    )  # first, so that an invalid one is reported at once
    if isinstance(study, TrainedStudy):
        result = _train(study, inputs, scale, quiet, store)
    else:
        assert isinstance(study, ComputedStudy)
        with _reporting() as report:
            result = study.run(scale, report, inputs)
    if folder:
        path = folder / f"{study.slug}.json"
        path.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
    code = 0 if len(result.runs) == result.planned else 1
    document = result.model_dump(mode="json") | ({"warnings": notes_of(result)} if quiet else {})
    return Answer(document, as_text(result), code=code)


ACTIONS: Final = {"list": list_studies, "run": run}


def _train(study: TrainedStudy, inputs: Inputs, scale: str, quiet: bool, store_option: str | None) -> Result:
    """Execute missing runs as one experiment, and compute the result from all."""
    configs = study.configs(scale, inputs)
    from isoviz.commands import train
    from isoviz.operations.access.service import of_command_line
    from isoviz.runs.recovery import mark_lost
    from isoviz.runs.store import Store
    from isoviz.studies import layer_profiles, records

    store = Store(store_option)
    mark_lost(store)
    wanted = records.missing(configs, records.read(store, configs))
    print(f"{len(wanted)} of {len(configs)} runs to carry out", file=sys.stderr)
    if wanted:
        train.check_models(wanted)
        service = of_command_line(store)
        train.launch_and_execute(store, service, wanted, f"{study.slug} {scale}", quiet=quiet)
    found = records.read(store, configs)
    if study.profiles:
        with _reporting() as report:
            found = layer_profiles.complete(store, found, report)
    return study.draw(found, scale, inputs)


@contextmanager
def _reporting() -> Iterator[Progress]:
    """A function (share, what) that draws a bar on stderr while that is a terminal."""
    with progress_bar() as bar:
        yield lambda share, what: bar(round(100 * share), 100, what)


def notes_of(result: Result) -> list[str]:
    """Notes of the tables, then of the result."""
    return [*(note for table in result.tables for note in table.notes), *result.notes]


def as_text(result: Result) -> str:
    """A result as text: its tables, the published numbers and the notes."""
    lines = [result.title]
    for table in result.tables:
        cells = [table.header, *table.lines()]
        widths = [max(len(line[column]) for line in cells) for column in range(len(table.header))]
        lines += ["", table.title]
        lines += ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in cells]
        lines += [f"note: {note}" for note in table.notes]
    if result.figures:
        lines.append(f"\n{', '.join(figure.place for figure in result.figures)}: what they draw is in --json and --out")
    lines.append("")
    for number in result.published:
        ours = "not computed" if number.reproduced is None else f"{number.reproduced:.5f}"
        differs = f"; differs in {number.differs}" if number.differs else ""
        lines.append(f"printed {number.published:g}, ours {ours}: {number.what} ({number.where}{differs})")
    for verdict in result.verdicts:
        lines += [f"\n{verdict.outcome}: {verdict.claim}", f"    {verdict.sentence}"]
    lines += [f"note: {note}" for note in result.notes]
    record = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    lines.append(f"scale {record.scale}, seed {record.seed}, {record.seconds:.1f} s, {versions}")
    return "\n".join(lines)
