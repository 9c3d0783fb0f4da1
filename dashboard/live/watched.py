"""Trainings that `isoviz.Watch` recorded and this app did not start: their list, and one in detail."""

from __future__ import annotations

import streamlit as st

from dashboard.components.live_lines import watched_lines
from dashboard.live.sections import REPLAY, replay_speed
from dashboard.shared import examples, menu, resources, theme, watched, wording
from dashboard.shared.stable import while_busy
from dashboard.shared.watched import Found
from isoviz.formatting import decimals
from isoviz.watch.trainings import Measured, Noted, Training

(KEY,) = menu.WATCHED
SHOWN = 12
"""Most trainings in the list; a link opens any."""
HOW = """No training is recorded yet. Add a watch to one, and it appears here while it trains:

```python
trainer.add_callback(isoviz.Watch(store=True))
```

Files elsewhere: `isoviz app FOLDER`."""


def selected(found: Found) -> str | None:
    """The key of the training to show: `?watched=KEY`, or the newest if there is no run to show instead."""
    asked = st.query_params.get(KEY)
    if asked is None:
        return found.own[0] if found.own and not _has_runs() else None
    newest = next(iter(found.trainings), None)  # examples come last
    if asked == menu.WATCHED[KEY]:
        if newest is None:
            st.info(HOW, icon=":material/monitor_heart:")
        return newest
    if asked not in found.trainings:
        reason = "Its file may have been deleted, or examples are hidden."
        st.warning(f"Watched training “{wording.plain(asked)}” not found. {reason}", icon=":material/search_off:")
        return None
    return asked


def trainings(found: Found, chosen: str | None) -> None:
    """The list of trainings, open where one of them is shown or is not an example. Refreshes while one trains."""
    if not (_listed(found, chosen) or found.problems):
        return
    with st.expander(
        "**Watched, not trained here** · trainings with `isoviz.Watch`", expanded=chosen is not None or bool(found.own)
    ):
        while_busy(
            lambda: any(one.state() == "training" for one in watched.found().trainings.values()), lambda: _list(chosen)
        )


def _listed(found: Found, chosen: str | None) -> list[str]:
    """Keys of the trainings in the list. Examples never stand beside trainings or runs of one's own, unless one is chosen."""
    shown = (found.own or ([] if chosen is None and _has_runs() else list(found.trainings)))[:SHOWN]
    return shown if chosen is None or chosen in shown or chosen not in found.trainings else [*shown, chosen]


def _has_runs() -> bool:
    return bool(resources.store().list(limit=1))


def _list(chosen: str | None) -> None:
    found = watched.found()
    shown = _listed(found, chosen)
    with st.container(gap="xsmall"):
        for key in shown:
            _line(key, found.trainings[key], key == chosen)
        if KEY in st.query_params and st.button("Show the runs", type="tertiary", icon=":material/arrow_back:"):
            del st.query_params[KEY]
            st.rerun()
    if found.problems:
        more = f" And {len(found.problems) - 1} more." if len(found.problems) > 1 else ""
        st.caption(f":material/broken_image: Left out: {wording.plain(found.problems[0])}.{more}")


def _line(key: str, training: Training, is_chosen: bool) -> None:
    name = wording.plain(training.started.name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(badge(training), width="content")
        if watched.is_example(key):
            st.markdown(examples.BADGE, width="content")
        if is_chosen:
            st.markdown(f"**{name}**", width="content")
        elif st.button(name, key=f"watched-{key}", type="tertiary", help="Show this training."):
            st.query_params[KEY] = key
            for other in ("run", REPLAY):
                st.query_params.pop(other, None)
            st.rerun()
        st.caption(_newest(training), width="stretch")


def badge(training: Training) -> str:
    """State of a training as Markdown; a collapse, and then that nothing could be judged, count more than its end."""
    if training.collapse is not None:
        return theme.status_badge("collapsed", f"collapsed at step {training.collapse.step:,}")
    if training.unjudged:
        return theme.status_badge("unjudged", f"not judged for {training.unjudged:,} steps")
    return theme.status_badge({"silent": "no news"}.get(training.state(), training.state()))


def _newest(training: Training) -> str:
    """Step and last measures."""
    started = wording.moment(training.started.time)[:16]
    measured = training.all_of(Measured)
    if not measured:
        return f"step {training.step:,} · not measured yet · {started}"
    last = measured[-1]
    if not last.n:
        return f"step {training.step:,} · no usable vectors for {last.unjudged:,} steps · {started}"
    titles = {"isoscore_unbiased": ("IsoScore", 3), "directions": ("directions", 1), "mean_cosine": ("mean cosine", 3)}
    numbers = [
        f"{title} {decimals(last.values[slug], places)}"
        for slug, (title, places) in titles.items()
        if slug in last.values
    ]
    return " · ".join([f"step {training.step:,}", *numbers, f"n = {last.n:,}, d = {last.d:,}", started])


def view(key: str, training: Training) -> None:
    """What the watch could not see, the curves of a training, and where it comes from."""
    for note in training.all_of(Noted):
        st.warning(f"Step {note.step:,}: {wording.plain(note.sentence)}", icon=":material/visibility_off:")
    watched_lines(key, training, replay_speed())
    about = training.started
    parts = (
        f"Started {wording.moment(about.time)}",
        f"model {about.model or 'unknown'}, layer {about.layer}",
        ", ".join(f"{name} {version}" for name, version in about.versions.items()),
        "" if watched.is_example(key) else training.file.name,
        f"shaded: warm-up, not judged; measured every {about.measure_every:,} steps over the last {about.window:,} vectors",
    )
    st.caption(wording.plain(" · ".join(filter(None, parts))))
