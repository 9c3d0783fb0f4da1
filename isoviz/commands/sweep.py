"""`isoviz sweep`: `isoviz train` over a grid of parameters."""

from __future__ import annotations

import argparse

from isoviz.commands import train
from isoviz.commands.train import run as run


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the verb."""
    train.add_options(parser)
    parser.add_argument(
        "--grid", action="append", metavar="NAME=V1,V2,...", required=True, help="values of one method parameter"
    )
