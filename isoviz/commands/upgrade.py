"""`isoviz upgrade`: a map from an old encoder's vectors to a new one's, and how much of the new neighbours it finds."""

from __future__ import annotations

from typing import Annotated

from isoviz import input_validation
from isoviz.commands.options import Column, file_of_vectors
from isoviz.commands.output import Answer
from isoviz.errors import InputError
from isoviz.operations.check import assignment
from isoviz.operations.operation import argument
from isoviz.operations.upgrade import UpgradeRequest, measure
from isoviz.readouts.upgrade import Map
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.whatif.upgrade import map_file


def run(
    old: Annotated[str, argument(f"the stored {file_of_vectors()}", "FILE")],
    new: Annotated[str, argument("the new encoder's vectors of the same rows, in the same order", "FILE")],
    map: Annotated[Map, argument("procrustes: a rotation and one factor; ridge: least squares")] = "procrustes",
    out: Annotated[
        str | None, argument("write the map, fitted on both halves: W, b and six lines of numpy", "ZIP")
    ] = None,
    column: Column = None,
    new_column: Annotated[str | None, argument("the vectors in --new, if they are called otherwise there")] = None,
    require: Annotated[str | None, argument("exit code 1 unless recall is surely this", "recall10=SHARE")] = None,
) -> Answer:
    """Fit on one half of the rows, measure on the other, both ways."""
    wanted, share = ("recall10", 0.0) if require is None else assignment(require, "require")
    if wanted != "recall10" or share is None or not 0 <= share <= 1:
        raise InputError.at("require", f"expected recall10=SHARE with a share from 0 to 1, got '{require}'")
    target = None if out is None else input_validation.path(out, "out")
    if target is not None and (target.suffix != ".zip" or not target.parent.is_dir() or target.exists()):
        raise InputError(f"out: give a new file that ends in .zip, in a folder that exists; got '{out}'", field="out")
    result, document = measure(UpgradeRequest(old=old, new=new, map=map, column=column, new_column=new_column))
    n = document["old"]["n"]
    document |= {"required": require, "out": None if target is None else str(target)}
    if target is not None:
        target.write_bytes(map_file(result, map, old, new, n))
    lines = [
        f"{old} (d = {document['old']['d']}) → {new} (d = {document['new']['d']}), n = {n:,}, {map}",
        "Recall@10 of the new vectors' neighbours, on rows that the map was not fitted on:",
        f"  new queries, mapped old vectors  {_words(result.mapped)}",
        f"  old queries, old vectors         {_words(result.old)}",
        f"  difference                       {_words(result.gain)}",
    ]
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
