"""The verdict of What-if on vectors: one line for each purpose."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shared import exported, wording
from dashboard.shared.exported import ExportedTable
from dashboard.whatif import sentences as words
from dashboard.whatif.form import PREFIX
from dashboard.whatif.sentences import PURPOSES, Purpose
from isoviz.readouts.division import Division
from isoviz.readouts.reading import CATALOGUE, Comparison
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.engine import Full, WhatIf, engine_of

CHECKED: Final = PREFIX + "checked"
"""Query parameter: the chain that was checked on the held-back rows, and the key of its vectors."""


class Card:
    """The card on the page; `fill` draws its lines, first without and then with the slow numbers.

    Args:
        engine: of a set of vectors.

    Attributes:
        sentences: the verdicts, once all numbers are known; exports and saved pages repeat them.
    """

    sentences: tuple[str, ...] = ()

    def __init__(self, engine: WhatIf, steps: Sequence[Step]) -> None:
        assert isinstance(engine.source, Division)
        self._engine, self._steps = engine, tuple(steps)
        self._vectors, self._key = engine.source.vectors, engine.key
        self._crosses = engine.source.crossed is not None
        self._present = [purpose for purpose in PURPOSES if purpose.needs in engine.annotations.needs]
        self._dividing = [one for one in self._present if not (one.needs == "labels" and self._crosses)]
        self._checked = f"{chains.write(self._steps)}@{self._key}"
        self._searches = self._vectors.relation == "relevance"
        with st.container(border=True):
            self._lines: DeltaGenerator = st.empty()
            self._below = st.container()

    def fill(self, full: Full | None) -> None:
        """Draw one line per purpose; without the slow numbers, verdicts are pending."""
        judged = [] if full is None or not self._steps else self._present
        verdicts = {purpose: self._verdict(purpose, full) for purpose in judged if full is not None}
        with self._lines.container():
            for purpose in PURPOSES:
                st.markdown(self._line(purpose, verdicts.get(purpose)))
            if self._present and self._steps:
                crossed = " The classifier is cross-validated over all labelled rows." if self._crosses else ""
                st.caption(
                    f"Verdict on {wording.plain(chains.write(self._steps))}, on rows it was not fitted on, with 95 % intervals; "
                    f"a point is 0.01.{crossed} The best of many tried settings is optimistic."
                )
        if not verdicts:
            return
        lines = [(purpose.title, *verdict) for purpose, verdict in verdicts.items()]
        self.sentences = tuple(f"{title}: {advice}. {reason}" for title, advice, reason in lines)
        table = pd.DataFrame(lines, columns=["For", "Verdict", "Reason"])
        exported.note(PREFIX + "verdicts", ExportedTable("Does the transform help?", table))
        if self._dividing:
            with self._below:
                self._check_held_back()

    def _line(self, purpose: Purpose, verdict: tuple[str, str] | None) -> str:
        if purpose not in self._present:
            if purpose.needs == "labels" and "label" in self._vectors.columns:
                reason = (
                    "Labels are not read beside queries"
                    if self._searches
                    else "These labels cannot be used: see the note above"
                )
                return f":gray[:material/help: **{purpose.title}: cannot tell.** {reason}.]"
            return f":gray[:material/help: **{purpose.title}: needs {purpose.missing}.**]"
        if not self._steps:
            return f"**{purpose.title}:** add a transform to get a verdict."
        if verdict is None:
            return f"**{purpose.title}:** :gray[:material/hourglass_top: pending]"
        advice, reason = verdict
        return f"**{purpose.title}: {advice}.** {wording.plain(reason)}"

    def _verdict(self, purpose: Purpose, full: Full) -> tuple[str, str]:
        """The advice and its reason: of the held-back rows once they are checked, else of the rows shown."""
        comparisons = {one.readout.slug: one for one in (*full.comparisons, *full.crossed)}
        shown = words.verdict(purpose, comparisons, self._steps)
        if purpose not in self._dividing or st.query_params.get(CHECKED) != self._checked:
            return shown
        return words.held_back(purpose, shown[0], self._held_back, self._steps)

    @cached_property
    def _held_back(self) -> dict[str, Comparison]:
        """The quick read-outs of the purposes on the held-back rows, by slug."""
        engine = engine_of(self._key, "held back")
        slugs = [slug for purpose in self._dividing for slug in purpose.readouts if not CATALOGUE[slug].slow]
        known = [slug for slug in dict.fromkeys(slugs) if CATALOGUE[slug].needs in engine.annotations.needs]
        return {slug: engine.comparison(self._steps, slug) for slug in known}

    def _check_held_back(self) -> None:
        """The button for the final check of this chain, and its result."""
        st.button(
            "Check on the held-back rows",
            key=PREFIX + "check",
            type="primary",
            icon=":material/verified:",
            help="These rows are unused so far. Check once, after you have chosen: every further check makes the result more optimistic.",
            on_click=st.query_params.__setitem__,
            args=(CHECKED, self._checked),
        )
        if st.query_params.get(CHECKED) == self._checked:
            for comparison in self._held_back.values():
                st.markdown(wording.plain(f"Held back: {words.readout(comparison)}"))
