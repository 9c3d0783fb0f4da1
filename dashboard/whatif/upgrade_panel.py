"""Another encoder without embedding again: what recall of its neighbours mapped vectors keep, and the map."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.inputs import set_choice
from dashboard.shared import downloads, job_progress, menu
from dashboard.whatif.form import PREFIX
from isoviz.jobs import queue
from isoviz.readouts.upgrade import MAPS
from isoviz.vectors import demo_sets
from isoviz.vectors.sets import VectorSet
from isoviz.whatif.upgrade import PARTS, UPGRADE

KEY = PREFIX + "upgrade"
_TITLES = dict(zip(PARTS, ("New queries, mapped vectors", "Old queries, old vectors", "Difference"), strict=True))


def draw(key: str, vectors: VectorSet) -> None:
    """For the stored set of a key: fields for the new encoder's vectors of the same rows; then the recalls, and the map to download."""
    title = "Change the encoder without embedding again"
    panel = st.expander(title, icon=":material/move_up:", key=KEY, bind="query-params")
    if not panel.open:
        return
    with panel:
        st.caption(
            "Choose the new encoder's vectors of the same rows, in the same order. A linear map from the vectors above to these is "
            "fitted on one half of the rows and measured on the other, both ways."
        )
        new = set_choice.key_field(KEY + "_", vectors.name if vectors.name in demo_sets.TITLES else menu.OWN_SET)
        kind = st.segmented_control(
            "Linear map",
            MAPS,
            default=MAPS[0],
            required=True,
            key=KEY + "_map",
            bind="query-params",
            help="procrustes: a rotation and one factor. ridge: least squares with a penalty.",
        )
        if new is None:
            return
        request = {"old": key, "new": new, "map": kind}
        result = queue.look(UPGRADE, queue.content_key(UPGRADE, request, None)).result
        if result is not None:
            _show(pd.DataFrame(result.facts["recall10"]).T)
        name = f"{downloads.file_name(vectors.name, 'upgrade')}.zip"
        job_progress.offer_file(
            UPGRADE, request, label="Linear map (numpy)", build="Fit and measure", file=name, key=KEY + "_file"
        )


def _show(recalls: pd.DataFrame) -> None:
    low, n = recalls["low"]["gain"], int(recalls["n"]["gain"])
    st.markdown(
        f"**Recall@10 of the new encoder's neighbours**, on {n:,} rows that the map was not fitted on. "
        + (
            "Mapped vectors find more of them than the old encoder does."
            if low > 0
            else "The map gives no more than keeping the old encoder."
        )
    )
    table = recalls[["value", "low", "high"]].set_axis(["Recall@10", "95 % from", "to"], axis=1)
    st.dataframe(table.rename(index=_TITLES).rename_axis("Search").reset_index(), hide_index=True, width="content")
