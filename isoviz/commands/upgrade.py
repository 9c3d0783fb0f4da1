"""`isoviz upgrade`: a map from an old encoder's vectors to a new one's, and how much of the new neighbours it finds."""

from __future__ import annotations

from typing import Annotated

from isoviz import input_validation
from isoviz.commands.options import Column, file_of_vectors
from isoviz.commands.output import Answer
from isoviz.errors import InputError
from isoviz.operations.check import assignment
from isoviz.operations.operation import argument
from isoviz.operations.upgrade import UpgradeRequest, map_file, measure
from isoviz.statistics.paired_bootstrap import Difference


class UpgradeOptions(UpgradeRequest):
    """What to map, and what to write or require."""

    old: Annotated[str, argument(f"the stored {file_of_vectors()}", "FILE")]
    column: Column = None
    out: Annotated[str | None, argument("write the map, fitted on both halves: W, b and six lines of numpy", "ZIP")] = (
        None
    )
    require: Annotated[str | None, argument("exit code 1 unless recall is surely this", "recall10=SHARE")] = None


def run(request: UpgradeOptions) -> Answer:
    """Fit on one half of the rows, measure on the other, both ways."""
    old, new, map, out, require = request.old, request.new, request.map, request.out, request.require
    wanted, share = ("recall10", 0.0) if require is None else assignment(require, "require")
    if wanted != "recall10" or share is None or not 0 <= share <= 1:
        raise InputError.at("require", f"expected recall10=SHARE with a share from 0 to 1, got '{require}'")
    target = None if out is None else input_validation.path(out, "out")
    if target is not None and (target.suffix != ".zip" or not target.parent.is_dir() or target.exists()):
        raise InputError(f"out: give a new file that ends in .zip, in a folder that exists; got '{out}'", field="out")
    result, document = measure(request)
    n = document["old"]["n"]
    document |= {"required": require, "out": None if target is None else str(target)}
    if target is not None:
        target.write_bytes(map_file(result, map, old, new, n))
    found = "what the questions find among new vectors" if request.queries else "the new vectors' neighbours"
    lines = [
        f"{old} (d = {document['old']['d']}) → {new} (d = {document['new']['d']}), n = {n:,}, {map}",
        f"Recall@10 of {found}, on rows that the map was not fitted on:",
        f"  new queries, mapped old vectors  {_words(result.mapped)}",
        f"  old queries, old vectors         {_words(result.old)}",
        f"  difference                       {_words(result.gain)}",
    ]
    lines += document.get("search", {}).get("sentences", [])
    written = [f"map written to {target}"] if target is not None else []
    low, high = result.mapped.low, result.mapped.high
    fails = require is not None and (low is None or low < share)
    if fails:
        clear = high is not None and high < share
        written.append(
            f"recall10 is below {share:g}" if clear else f"cannot tell whether recall10 is {share:g} or more"
        )
    return Answer(document, "\n".join(lines + written), list(result.notes), int(fails))


def _words(measured: Difference) -> str:
    return f"{measured.value:.3f} (95 % interval {measured.low:.3f} to {measured.high:.3f}, n = {measured.n:,})"
