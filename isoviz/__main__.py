"""The command line: `python -m isoviz VERB`; `_VERBS` lists the verbs.

Exit codes: 0 done; 1 a run failed, or was stopped; 2 bad input, with one line on stderr that says which option and what is allowed;
130 (Ctrl-C) or 143 (SIGTERM) where it was ended at once; 141 where no one reads its output any more.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import Any, NoReturn

from isoviz import __version__, boundary
from isoviz.commands.output import collect_warnings, quiet_libraries, reader_is_gone
from isoviz.errors import LINE, InputError, IsoVizError, one_line, shortened
from isoviz.jobs.processes import share_cores


def _whole(text: str) -> int:
    return _checked(boundary.whole_number, text)


def _number(text: str) -> float:
    return _checked(boundary.number, text)


def _port(text: str) -> int:
    port = _whole(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"expected 1 to 65535, got {port}")
    return port


def _checked(read: Callable[[str], Any], text: str) -> Any:
    try:
        return read(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_READ: dict[Any, tuple[Callable[[str], Any], str]] = {
    int: (_whole, "N"),
    int | None: (_whole, "N"),
    float: (_number, "X"),
}


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        _say(message)
        sys.exit(2)


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """All verbs, and the options of those that `words` may begin with.

    Args:
        words: what will be parsed. Only the options of the verb that they begin with are added, since the training options are
            drawn from the catalogues, which `runs list` should not wait for. Without a verb, all are.
    """
    parser = _Parser(prog="isoviz", description="Measure, change and compare the isotropy of transformer embeddings.")
    parser.add_argument("--version", action="version", version=f"isoviz {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    first = words[0] if words and words[0] in _VERBS else None
    for verb, (text, add_options) in _VERBS.items():
        of_verb = verbs.add_parser(verb, help=text)
        if first in (None, verb):
            add_options(of_verb)
    return parser


def _add_sweep(parser: argparse.ArgumentParser) -> None:
    _add_training(parser)
    parser.add_argument(
        "--grid", action="append", metavar="NAME=V1,V2,...", required=True, help="values of one method parameter"
    )


def _add_training(parser: argparse.ArgumentParser) -> None:
    from isoviz.config import RunConfig
    from isoviz.parameters import choices_of, extra
    from isoviz.recipes import RECIPES
    from isoviz.runs.planning import OPTIONS

    fields = RunConfig.model_fields
    parser.add_argument("--model", default=fields["model"].default, help=fields["model"].description)
    parser.add_argument("--task", default=fields["task"].default, help=fields["task"].description)
    parser.add_argument("--data", metavar="DIR", help=f"{fields['data'].description} For --task own also one file.")
    _add_own(parser)
    parser.add_argument("--method", default=fields["method"].default, metavar="SLUG", help=fields["method"].description)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the method")
    parser.add_argument("--seeds", type=_whole, nargs="+", default=[0], metavar="N", help="one run per seed")
    parser.add_argument(
        "--recipe", metavar="NAME", help=f"use a paper's settings for everything not given here: {', '.join(RECIPES)}"
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, field in fields.items():
        if (option := OPTIONS.get(name)) is None:
            continue
        section = extra(field).get("section", "Training")
        group = groups.get(section) or groups.setdefault(section, parser.add_argument_group(section))
        if field.annotation is bool:
            group.add_argument(option, dest=name, action="store_true", default=None, help=field.description)
            continue
        default = "depends on the model" if name == "learning_rate" else field.default
        notes = [f"one of {', '.join(choices)}"] if (choices := choices_of(field)) else []
        notes += [f"default: {default}"] if default is not None else []
        read, metavar = _READ.get(field.annotation, (str, "NAME" if choices else "TEXT"))
        group.add_argument(
            option,
            dest=name,
            type=read,
            metavar=metavar,
            help=f"{field.description} ({'; '.join(notes)})" if notes else field.description,
        )
    parser.add_argument(
        "--queue", action="store_true", help="queue the runs for workers or the app; train nothing here"
    )
    parser.add_argument("--repeat", action="store_true", help="with --queue: also queue runs that exist already")
    _add_store(parser)


def _add_own(parser: argparse.ArgumentParser) -> None:
    from isoviz.runs.planning import OWN_OPTIONS
    from isoviz.tasks.protocol import HEAD_KINDS, OwnTask

    group = parser.add_argument_group("own data", "for --task own: the columns of the files, and what they are")
    for name, option in OWN_OPTIONS.items():
        options: dict[str, Any] = {"type": {"share": _number, "split_seed": _whole}.get(name, str), "metavar": "COLUMN"}
        if name == "kind":
            options |= {"choices": HEAD_KINDS, "metavar": "KIND"}
        elif name == "label_names":
            options |= {"nargs": "+", "metavar": "NAME"}
        elif name in ("share", "split_seed"):
            options["metavar"] = "N"
        group.add_argument(option, dest=f"own.{name}", help=OwnTask.model_fields[name].description, **options)


def _add_measure(parser: argparse.ArgumentParser) -> None:
    from isoviz.config import RunConfig

    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--embeddings", metavar="FILE", help="vectors: .npy, .npz, .safetensors, .parquet, .arrow, .csv, .tsv, .jsonl"
    )
    source.add_argument("--model", help="bundled model, local directory or hub id, which may end in @REVISION")
    parser.add_argument("--task", default="demo/acceptability")
    parser.add_argument("--data", metavar="DIR", help="the task's files; for --task own also one file")
    parser.add_argument("--direction", metavar="FROM-TO", help=RunConfig.model_fields["direction"].description)
    _add_own(parser)
    parser.add_argument("--split", default="validation", metavar="NAME")
    parser.add_argument(
        "--layer", type=_whole, metavar="N", help="one cloud: from 1, 0 is the embedding output (default: the last)"
    )
    parser.add_argument(
        "--pooling",
        choices=("sentence", "cls", "last", "mean", "tokens", "head"),
        help="one cloud (default: sentence for a sentence-transformers model, else cls, for a decoder last); without --layer and "
        "--pooling, a table of all layers and poolings too",
    )
    parser.add_argument(
        "--prompt", metavar="NAME", help="prompt of a sentence-transformers model (default: the model's)"
    )
    parser.add_argument(
        "--truncate-dim", type=_whole, metavar="N", help="keep the first N dimensions of its sentence vectors"
    )
    parser.add_argument(
        "--column",
        metavar="NAME",
        help="the vectors in the file: a column of lists, dim_* or names with commas for one column per dimension, or an array",
    )
    parser.add_argument(
        "--labels",
        metavar="NAME",
        help="column of its labels, or a table with a column 'label': read-outs of labels too",
    )
    parser.add_argument(
        "--pairs",
        metavar="FILE",
        help="scored pairs of ids, or relevance of documents to queries; adds their read-outs",
    )
    parser.add_argument(
        "--as-weights", action="store_true", help="also I1 and I2, the file's rows read as output vectors"
    )
    parser.add_argument("--max-eval", type=_whole, metavar="N", help="use the first N rows")
    parser.add_argument("--allow-random", action="store_true", help=RunConfig.model_fields["allow_random"].description)
    parser.add_argument(
        "--max-length", type=_whole, default=128, metavar="N", help="tokens read of a row (default: 128)"
    )
    parser.add_argument("--batch-size", type=_whole, default=64, metavar="N", help="rows per step (default: 64)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _add_transform(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chain", required=True, metavar="CHAIN", help="as What-if writes it: all_but_the_top:remove=2~isobn:beta=0.5"
    )
    parser.add_argument(
        "--in",
        dest="input",
        required=True,
        metavar="FILE",
        help="vectors: .npy, .npz, .safetensors, .parquet, .arrow, .csv, .tsv, .jsonl",
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="the transformed vectors, as .npy; float32 stays float32"
    )
    parser.add_argument("--fit-on", metavar="FILE", help="the vectors to fit the transforms on (default: --in)")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--chain", required=True, metavar="CHAIN", help="affine steps, as What-if writes them: zca:eps=0.1"
    )
    fitted = parser.add_mutually_exclusive_group(required=True)
    fitted.add_argument(
        "--fit-on", metavar="FILE", help="vectors to fit the chain on: .npy, .npz, .safetensors, .parquet, .csv, …"
    )
    fitted.add_argument("--run", metavar="ID", help="a finished run, whose training vectors the chain is fitted on")
    parser.add_argument(
        "--out",
        required=True,
        metavar="PATH",
        help="FILE.zip: W, b and six lines of numpy; else the new model's folder",
    )
    parser.add_argument(
        "--pairs", metavar="FILE", help="scored pairs or relevance for the ids in --fit-on; adds their read-outs"
    )
    parser.add_argument("--model", help="the model that encoded the vectors of --fit-on")
    parser.add_argument(
        "--pooling",
        choices=("sentence", "cls", "last", "mean"),
        help="the pooling of those vectors (default: as for measure)",
    )
    parser.add_argument("--prompt", metavar="NAME", help="the model's prompt used for them")
    parser.add_argument("--truncate-dim", type=_whole, metavar="N", help="keep only the first N dimensions")
    _add_store(parser)


def _add_runs(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, text in (
        ("list", "the newest runs"),
        ("show", "one run"),
        ("stop", "stop a run after its current optimiser step; a second time, at once"),
        ("resume", "go on here"),
        ("delete", "remove a run and its files"),
    ):
        action = actions.add_parser(name, help=text)
        if name == "list":
            action.add_argument(
                "--limit", type=_whole, metavar="N", help="newest N runs; 0 for all (default: 100, with --json all)"
            )
        else:
            action.add_argument("id", metavar="ID")
        _add_store(action)
    for name, text, choices in (
        ("move", "move a run in the queue", ("first", "up", "down", "last")),
        ("priority", "set a queued run's priority; higher ones start first", ("high", "normal", "low")),
    ):
        action = actions.add_parser(name, help=text)
        action.add_argument("id", metavar="ID")
        action.add_argument("to", choices=choices)
        _add_store(action)
    seeds = actions.add_parser("add-seeds", help="train every setup of an experiment with more seeds, here")
    seeds.add_argument("experiment", metavar="EXPERIMENT", help="its name, as on the Experiments page")
    seeds.add_argument("--count", type=_whole, default=3, metavar="N", help="seeds to add (default: 3)")
    _add_store(seeds)
    export = actions.add_parser("export", help="runs with all their events, as JSON")
    export.add_argument("ids", nargs="+", metavar="ID")
    _add_store(export)
    model = actions.add_parser("save-model", help="write a finished run's model as a transformers directory")
    model.add_argument("id", metavar="ID")
    model.add_argument("--out", required=True, metavar="DIR", help="a new or empty folder")
    _add_store(model)
    cite = actions.add_parser("cite", help="BibTeX of the methods, tasks and models of runs")
    cite.add_argument("ids", nargs="+", metavar="ID")
    cite.add_argument("--measures", action="store_true", help="and of every measure that they report")
    _add_store(cite)


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="runs, or experiments: all runs launched together")
    parser.add_argument(
        "--by",
        default="method",
        metavar="NAME",
        help="the factor to compare: method (with its parameters), a setting, or a parameter (default: method)",
    )
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="a metric of the task, or a measure of isotropy (default: the task's primary metric)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="the setting that the others are compared with (default: the method baseline, else the first)",
    )
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        metavar="P",
        help="familywise error rate of the table (default: 0.05)",
    )
    _add_store(parser)


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", metavar="EXPERIMENT", help="its name, as on the Experiments page")
    parser.add_argument(
        "--out",
        metavar="FILE",
        help="FILE.html: one file with interactive figures; FILE.zip: Markdown, PNG and CSV (default: EXPERIMENT.html)",
    )
    _add_store(parser, json=False)


def _add_study(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="all studies")
    run_parser = actions.add_parser("run", help="compute one, beside the published numbers")
    run_parser.add_argument("name", metavar="NAME")
    run_parser.add_argument("--scale", choices=("quick", "full"), default="quick", help="size (default: quick)")
    run_parser.add_argument("--out", metavar="DIR", help="write the result there, as NAME.json")
    group = run_parser.add_argument_group(
        "of your own", "replace the study's models, tasks and settings, where it allows that (`study list`)"
    )
    group.add_argument(
        "--model",
        nargs="+",
        default=[],
        metavar="[NAME=]MODEL",
        help="bundled model, local directory or hub id; NAME is what the record calls it",
    )
    group.add_argument("--tasks", nargs="+", default=[], metavar="TASK", help="tasks of the catalogue")
    group.add_argument("--data", nargs="+", default=[], metavar="TASK=DIR", help="the files of a task")
    group.add_argument(
        "--seeds", nargs="+", type=int, default=[], metavar="N", help="seeds of the runs; a verdict needs three"
    )
    group.add_argument("--max-train", type=int, metavar="N", help="at most this many training rows per run")
    group.add_argument("--max-eval", type=int, metavar="N", help="at most this many validation rows per run")
    group.add_argument("--epochs", type=int, metavar="N", help="of a run")
    group.add_argument("--batch-size", type=int, metavar="N", help="batch size of a run")
    group.add_argument("--max-length", type=int, metavar="N", help="tokens of a text; longer texts are cut")
    group.add_argument("--lr", type=float, dest="learning_rate", metavar="RATE", help="peak learning rate of a run")
    run_parser.add_argument("--fresh", action="store_true", help="run again even what the store already has")
    _add_store(run_parser)
    listing.add_argument("--json", action="store_true", help="one JSON document on stdout")


def _add_lessons(parser: argparse.ArgumentParser) -> None:
    output = parser.add_mutually_exclusive_group(required=True)
    output.add_argument("--out", metavar="FILE", help="where to write the HTML file")
    output.add_argument("--check", nargs="+", metavar="FILE", help="report the errors in lessons you have written")
    parser.add_argument("--add", nargs="+", default=[], metavar="FILE", help="your own lessons for the HTML file")


def _add_app(app: argparse.ArgumentParser) -> None:
    app.add_argument("--port", type=_port, default=8501)
    app.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    app.add_argument("--headless", action="store_true", help="do not open a browser")
    _add_store(app, json=False)
    access = app.add_argument_group("access", "who may open it, and from where: docs/security.md")
    access.add_argument("--url", metavar="URL", help="its public URL behind a proxy: https://isoviz.example.org")
    for name, text in (
        ("host", "one more host name it answers to"),
        ("origin", "one more origin whose pages may call it, for a proxy that changes the Host"),
        ("frame", "an origin whose pages may embed it in a frame"),
    ):
        access.add_argument(f"--allow-{name}", action="append", default=[], metavar=name.upper(), help=text)
    access.add_argument(
        "--roots",
        nargs="*",
        metavar="DIR",
        help="folders below which the browser may name data and models (default: $ISOVIZ_ROOTS, else this folder and your home "
        "folder; none where others can reach the server)",
    )
    access.add_argument(
        "--new-links", action="store_true", help="make new links first; old links and their cookies stop working"
    )
    access.add_argument(
        "--no-token", action="store_true", help="give anyone on this machine your rights; loopback only"
    )
    access.add_argument(
        "--api-writes",
        action="store_true",
        help="let programs launch and stop runs through the HTTP API: docs/agents.md",
    )


def _add_mcp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-writes", action="store_true", help="let the agent launch and stop runs")
    _add_store(parser, json=False)


def _add_worker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--idle",
        type=_number,
        default=60.0,
        metavar="SECONDS",
        help="stop when the queue has been empty for this long (default: 60)",
    )
    parser.add_argument(
        "--ray",
        metavar="URL",
        help="train on a Ray cluster instead of this machine; URL is that of its dashboard, such as http://127.0.0.1:8265",
    )
    parser.add_argument("--cpus", type=_whole, metavar="N", help="with --ray: CPUs of each run (default: 1)")
    parser.add_argument(
        "--gpus", type=_whole, metavar="N", help="with --ray: GPUs of each process of a run (default: 0)"
    )
    parser.add_argument("--run", help=argparse.SUPPRESS)  # what a job of the cluster does
    parser.add_argument("--attempt", type=_whole, help=argparse.SUPPRESS)
    _add_store(parser, json=False)


def _add_links(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    show = actions.add_parser("show", help="the link of each role")
    renew = actions.add_parser(
        "renew", help="make new links; the old ones stop working, and their visitors must log in again"
    )
    renew.add_argument("roles", nargs="*", metavar="ROLE", help="viewer, runner or operator (default: all)")
    for action in (show, renew):
        action.add_argument("--url", metavar="URL", help="the public URL (default: $ISOVIZ_URL, else this machine)")
        action.add_argument("--port", type=_port, default=8501, help="of the default URL")
        _add_store(action)


def _add_store(parser: argparse.ArgumentParser, json: bool = True) -> None:
    parser.add_argument(
        "--store", metavar="URL_OR_DIR", help="where runs are kept (default: $ISOVIZ_HOME, else the user's data folder)"
    )
    if json:
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "train": ("fine-tune with one method, one run per seed", _add_training),
    "sweep": ("fine-tune over a grid of parameters and seeds", _add_sweep),
    "measure": ("every measure of an array file, or of a model on a task", _add_measure),
    "transform": ("apply a chain of post-hoc transforms to an array file", _add_transform),
    "export": ("write a chain as a matrix for numpy, or as a sentence-transformers model", _add_export),
    "runs": (
        "list, show, stop, resume, delete, export or cite runs, reorder the queue, save a model, or add seeds to an experiment",
        _add_runs,
    ),
    "worker": ("train queued runs of a store one after another, on any machine that can reach it", _add_worker),
    "compare": ("do these runs differ? intervals, tests, and how many seeds a test would need", _add_compare),
    "report": ("write an experiment's tables, tests and figures to one file", _add_report),
    "study": ("list the papers' figures and tables, or compute one", _add_study),
    "lessons": ("write the playground and the lessons as one HTML file, or check your own lessons", _add_lessons),
    "app": ("open the dashboard", _add_app),
    "mcp": ("serve runs and measures to an agent, over the Model Context Protocol", _add_mcp),
    "links": ("show or renew the links that open the dashboard", _add_links),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, dispatch, and turn the user's errors into one line and exit code 2, an interrupt into its own code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        _check_words(words)
        options = build_parser(words).parse_args(words)
        quiet_libraries()
        collect_warnings()
        share_cores(os.environ)
        verb = "train" if options.verb == "sweep" else options.verb
        exit_code = int(importlib.import_module(f"isoviz.commands.{verb}").run(options))
        sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        if not reader_is_gone():
            raise
        return 141  # as by SIGPIPE
    except IsoVizError as error:
        _say(" ".join(filter(None, (_with_option(error), error.advice))))
        return 2
    except KeyboardInterrupt as interrupt:
        _say("interrupted")
        return int(getattr(interrupt, "exit_code", 130))


def measured(options: dict[str, Any]) -> dict[str, Any]:
    """The document of `measure --json`, for `isoviz.jobs.guarded`; `options` replace the command line's defaults."""
    from isoviz.commands import measure
    from isoviz.training.devices import available_cores

    quiet_libraries()
    collect_warnings()
    parsed = build_parser(["measure"]).parse_args(["measure", "--model", "", "--json"])
    if options["model"] is not None:
        import torch

        torch.set_num_threads(available_cores())  # the processes that read files have one
    with redirect_stdout(io.StringIO()) as printed:
        measure.run(argparse.Namespace(**{**vars(parsed), **options}))
    return dict(json.loads(printed.getvalue()))


def _check_words(words: Sequence[str]) -> None:
    """Refuse what argparse lets through: an empty value, `--option=--` (of which it makes a list), and what is not UTF-8.

    That can be neither stored nor shown; arguments with such bytes hold them as lone surrogates.
    """
    for before, word in zip(("", *words), words, strict=False):
        name, _, value = word.partition("=") if word.startswith("--") else (before, "", word)
        if (not word.strip() and before.startswith("--")) or (
            word.startswith("--") and "=" in word and value in ("", "--")
        ):
            raise InputError(
                f"{shortened(name)}: expected a value, got '{value.strip()}'; give a value or omit the option"
            )
        try:
            word.encode()
        except UnicodeEncodeError:
            raise InputError(f"the argument '{shortened(word)}' is not valid UTF-8") from None


def _say(message: str) -> None:
    print(one_line(f"isoviz: {message}", LINE), file=sys.stderr)


def _with_option(error: IsoVizError) -> str:
    """The message with the option in place of the field it begins with."""
    from isoviz.runs.planning import OPTIONS, OWN_OPTIONS

    message, field = str(error), error.field or ""
    option = "--set " + field.removeprefix("params.") if field.startswith("params.") else OPTIONS.get(field)
    option = option or OWN_OPTIONS.get(field.removeprefix("own."))
    option = option or {"seed": "--seeds", "grid": "--grid"}.get(field, f"--{field}")
    return option + message.removeprefix(field) if field and message.startswith(field + ":") else message


if __name__ == "__main__":
    sys.exit(main())
