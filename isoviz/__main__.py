"""The command line: `python -m isoviz VERB`; `_VERBS` lists the verbs.

Exit codes: 0 done; 1 a run failed, or was stopped, or vectors changed; 2 bad input, with one line on stderr that says which option
and what is allowed; 130 (Ctrl-C) or 143 (SIGTERM) where it was ended at once; 141 where no one reads its output any more.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NoReturn

from isoviz import __version__
from isoviz.commands.output import collect_warnings, quiet_libraries, reader_is_gone
from isoviz.errors import LINE, InputError, IsoVizError, install, one_line, shortened, without_password
from isoviz.jobs.processes import collect_rarely, share_cores

_VERBS: Final = {
    "train": "fine-tune with one method, one run per seed",
    "sweep": "fine-tune over a grid of parameters and seeds",
    "measure": "every measure of an array file, or of a model on a task",
    "ruler": "what a cosine means for an encoder: noise floor, P(related | cosine), thresholds",
    "check": "did these vectors change? measures compared with a saved baseline, exit code 1 if so",
    "transform": "apply a chain of post-hoc transforms to an array file",
    "upgrade": "does a linear map of old vectors save re-embedding? neighbour recall on rows that it was not fitted on",
    "frontier": "how small can vectors be stored? dimensions, bits and rotations, judged on your questions or on neighbours",
    "runs": "list, show, stop, resume, delete or export runs, or save a model",
    "worker": "train queued runs of a store one after another, on any machine that can reach it",
    "compare": "which encoder ranks higher on your questions? Or do these runs differ?",
    "study": "list the papers' figures and tables, or compute one",
    "lessons": "write the playground and the lessons as one HTML file, or check your own lessons",
    "page": "write a page without a server that takes your vectors, as one HTML file",
    "app": "open the dashboard",
    "mcp": "serve runs and measures to an agent, over the Model Context Protocol",
    "skill": "write SKILL.md, what an agent should know before it uses IsoViz",
    "doctor": "check this installation: packages, devices, disk, store and hub",
    "links": "show or renew the links that open the dashboard",
}
"""What each verb does. Its module in `isoviz.commands` has the function `run`, or `ACTIONS`, a function by name; docstrings are help,
and annotations are options.
"""


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        _say(message)
        sys.exit(2)


def build_parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """All verbs, with their options.

    Args:
        words: the arguments. If there are any, only the options of the verb that they begin with are added, so that no other verb's
            modules are imported.
    """
    parser = _Parser(prog="isoviz", description="Measure, change and compare the isotropy of transformer embeddings.")
    parser.add_argument("--version", action="version", version=f"isoviz {__version__}")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb, text in _VERBS.items():
        of_verb = verbs.add_parser(verb, help=text)
        if words and words[0] != verb:
            continue
        from isoviz.commands.options import add_verb  # not for --help: it imports pydantic

        module = importlib.import_module(f"isoviz.commands.{'train' if verb == 'sweep' else verb}")
        if not hasattr(module, "ACTIONS"):
            add_verb(of_verb, module.sweep if verb == "sweep" else module.run)
        else:
            actions = of_verb.add_subparsers(dest="action", required=True, metavar="ACTION")
            for name, call in module.ACTIONS.items():
                add_verb(actions.add_parser(name, help=call.__doc__.partition("\n")[0].rstrip(".")), call)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse, dispatch, and turn the user's errors into one line and exit code 2, an interrupt into its own code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        _check_words(words)
        collect_rarely()
        quiet_libraries()  # these three before the verb's module, which may import torch
        collect_warnings()
        share_cores(os.environ)
        if words and words[0] not in _VERBS and not words[0].startswith("-") and Path(words[0]).suffix:
            words = _opening(words)
        options = build_parser(words or [""]).parse_args(words)
        exit_code = int(options.execute(options))
        sys.stdout.flush()
        return exit_code
    except BrokenPipeError:
        if not reader_is_gone():
            raise
        return 141  # as by SIGPIPE
    except IsoVizError as error:
        message = _with_option(error)
        _say(f"{message}{'' if message.endswith('.') else '.'} {error.advice}" if error.advice else message)
        return 2
    except ModuleNotFoundError as missing:
        if missing.name is None or (package := missing.name.partition(".")[0]) in ("isoviz", "dashboard"):
            raise
        _say(f"needs the package {package}, which is not installed; run `{install(_extra(words, package))}`")
        return 2
    except KeyboardInterrupt as interrupt:
        _say("interrupted")
        return int(getattr(interrupt, "exit_code", 130))


def _opening(words: Sequence[str]) -> list[str]:
    """`isoviz FILE`: Explore, or in the core the page without a server with the vectors inside."""
    if find_spec("streamlit") is None:
        return ["page", "--embeddings", *words]
    return ["app", "--open", *("--headless" if word == "--no-browser" else word for word in words)]


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


def _extra(words: Sequence[str], package: str) -> str:
    """The extra of pyproject.toml that installs what a verb needs."""
    if package in ("pandas", "pyarrow", "safetensors"):
        return "tables"
    if package == "ray":
        return "ray"
    if package in ("faiss", "h5py"):
        return "formats"
    return {"app": "app", "mcp": "mcp"}.get(words[0] if words else "", "train")


def _say(message: str) -> None:
    print(one_line(without_password(f"isoviz: {message}"), LINE), file=sys.stderr)


def _with_option(error: IsoVizError) -> str:
    """The message with the option in place of the field it begins with."""
    from isoviz.runs.planning import OPTIONS, OWN_OPTIONS

    message, field = str(error), error.field or ""
    option = "--set " + field.removeprefix("params.") if field.startswith("params.") else OPTIONS.get(field)
    option = option or OWN_OPTIONS.get(field.removeprefix("own."))
    special = {"seed": "--seeds", "grid": "--grid", "vectors": "vectors", "encoders": "encoders", "address": "URL"}
    option = option or special.get(field, f"--{field.replace('_', '-')}")
    named = field and not field.isupper() and message.startswith(field + ":")  # in capitals: an environment variable
    return option + message.removeprefix(field) if named else message


if __name__ == "__main__":
    sys.exit(main())
