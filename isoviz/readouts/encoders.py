"""Encoders compared on one search: the same questions and documents, ranked by the cosines of each.

    print(isoviz.compare({"old": (documents, questions), "new": (other_documents, other_questions)}, relevance).sentences)

The first encoder is what the others are compared with, question by question. Questions that share a relevant document are one unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, computed_field

from isoviz.cosines.pairs import FEWEST_RELATED, checked, connected, pairs_of, relation_of, together
from isoviz.errors import InputError, shortened
from isoviz.formatting import decimals
from isoviz.readouts import retrieval
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image, top
from isoviz.statistics.paired_bootstrap import Mean, interval
from isoviz.statistics.two_samples import holm
from isoviz.vectors.sets import VectorSet

Matrix = NDArray[np.float64]
Ends = tuple[float, float, float]
"""A value and its 95 % interval."""
Outcome = Literal["higher", "lower", "no harm", "cannot tell"]

QUALITIES: Final = {"ndcg10": "nDCG@10", "recall10": "Recall@10", "mrr": "MRR@10"}
MOST: Final = 6
MARGIN: Final = 0.01
LEVEL: Final = 0.95
WORSE: Final = 10
"""Questions shown of those that get worse."""
_SLUGS: Final = ("ndcg_cosine", "recall10_cosine", "mrr_cosine")
_TOP: Final = 3
_FEWEST: Final = 10
"""Units below which nothing is decided."""
_FLOOR_ROWS: Final = 1_000
_DRAWS: Final = 4_000


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Hit(_Record):
    """A document in an encoder's ranking."""

    document: str
    text: str | None
    cosine: float
    relevant: bool


class Question(_Record):
    """A question that gets worse: its nDCG@10 by the first and the other encoder, and the first documents of each."""

    question: str
    text: str | None
    before: float
    after: float
    hits_before: tuple[Hit, ...]
    hits_after: tuple[Hit, ...]


class Encoder(_Record):
    """One encoder on all questions.

    Attributes:
        d: dimensions; `bytes`: of a vector as given; `milliseconds`: encoding a text took here, where it was encoded.
        noise_floor: 99 % of pairs of a question and a document that is not relevant have a lower cosine; without questions, of rows.
        quality: each of `QUALITIES` with its interval; empty without questions.
    """

    name: str
    d: int
    bytes: int
    milliseconds: float | None = None
    noise_floor: Ends | None = None
    quality: dict[str, Ends] = {}


class Difference(_Record):
    """An encoder minus the first, question by question.

    Attributes:
        change: of each of `QUALITIES`, with its interval for one comparison.
        wins, ties, losses: questions whose nDCG@10 rises, stays, falls.
        p, p_holm: of no change of nDCG@10; None where no question changes.
        at_most: nDCG@10 falls by at most this, with a confidence of 95 % over all comparisons.
        outcome: `higher` or `lower` if p_holm < 0.05, else `no harm` if `at_most` is within the margin.
        harmless: whether `at_most` is within the margin.
        neighbours: without questions: the share of each row's ten nearest rows that both find.
    """

    name: str
    change: dict[str, Ends] = {}
    wins: int = 0
    ties: int = 0
    losses: int = 0
    p: float | None = None
    p_holm: float | None = None
    at_most: float = 1.0
    outcome: Outcome = "cannot tell"
    harmless: bool = False
    sentence: str = ""
    neighbours: Ends | None = None
    worse: tuple[Question, ...] = ()


class EncoderComparison(_Record):
    """What `compare` says."""

    encoders: tuple[Encoder, ...]
    differences: tuple[Difference, ...]
    questions: int
    documents: int
    units: int = Field(description="questions, where those that share a relevant document count once")
    margin: float
    notes: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentences(self) -> tuple[str, ...]:
        """A verdict on each encoder."""
        return tuple(one.sentence for one in self.differences)

    def table(self) -> list[dict[str, Any]]:
        """A row for each encoder, with the change from the first and all intervals."""
        rows = []
        for one, change in zip(self.encoders, (None, *self.differences), strict=True):
            row: dict[str, Any] = {"encoder": one.name, "d": one.d, "bytes": one.bytes, "ms_per_text": one.milliseconds}
            parts = {**one.quality, "noise_floor": one.noise_floor}
            if change is not None:
                parts |= {f"{name}_change": ends for name, ends in change.change.items()}
                parts |= {"neighbour_recall10": change.neighbours}
            for name, ends in parts.items():
                if ends is not None:
                    row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            if change is not None:
                row |= change.model_dump(include={"wins", "ties", "losses", "p", "p_holm", "at_most", "outcome"})
            rows.append(row)
        return rows


class Names(NamedTuple):
    """Ids and texts of documents and questions, in the order of their rows."""

    documents: Sequence[str]
    questions: Sequence[str]
    document_texts: Sequence[str] | None = None
    question_texts: Sequence[str] | None = None


def compare(
    encoders: Mapping[str, tuple[ArrayLike, ArrayLike | None]],
    relevance: ArrayLike | None = None,
    *,
    margin: float = MARGIN,
    milliseconds: Mapping[str, float] | None = None,
    names: Names | None = None,
    notes: Sequence[str] = (),
) -> EncoderComparison:
    """Which encoder ranks higher on these questions? Paired nDCG@10, recall@10 and MRR@10 of cosines, and a verdict on each.

    Intervals and tests are those of Student's t over units. The bound of *no harm* is the quantile of a Bayesian bootstrap (Rubin 1981)
    that counts one more unit, which loses everything: few questions, none of which changes, exclude no harm. Tests are corrected by
    Holm's method, bounds by Bonferroni's.

    Args:
        encoders: name → vectors of the documents (c, d) and of the questions (q, d); two to six, each with its own d. Without questions
            (None), only neighbours among documents are compared.
        relevance: (g, 2) or (g, 3): the row of a question, that of a document (from 0), and the grade above 0 (default: 1).
        margin: largest fall of nDCG@10 that does no harm.
        milliseconds: that encoding a text took, by name.
        names: ids and texts, for the questions that get worse; None for row numbers from 1.
        notes: what a reader must know, kept in the result.

    Raises:
        InputError: (a ValueError) fewer than two encoders or more than six, vectors that do not fit, or no relevant document.
    """
    if not 2 <= len(encoders) <= MOST:
        raise InputError.at("encoders", f"give two to {MOST} encoders, got {len(encoders)}")
    if not 0 < margin < 1:
        raise InputError.at("margin", f"must be above 0 and below 1, which is 100 points (got {margin:g})")
    parts = {name: _rows(name, *both) for name, both in encoders.items()}
    sizes = {(len(documents), len(questions)) for documents, questions in parts.values()}
    if len(sizes) > 1:
        shown = ", ".join(f"{len(one):,}" + f" and {len(other):,}" * bool(len(other)) for one, other in parts.values())
        raise InputError.at("encoders", f"all need the same documents and questions, in the same order; got {shown}")
    ((c, q),) = sizes
    took, names = milliseconds or {}, names or Names(list(map(str, range(1, c + 1))), list(map(str, range(1, q + 1))))
    links = _links(relevance, c, q)
    described = {
        name: Encoder(
            name=name,
            d=documents.shape[1],
            bytes=documents.shape[1] * documents.dtype.itemsize,
            milliseconds=took.get(name),
            noise_floor=_noise_floor(np.concatenate([documents, questions]), c, links),
        )
        for name, (documents, questions) in parts.items()
    }
    if links is None:
        images = [Image(documents) for documents, _ in parts.values()]
        differences = [_neighbours(name, images[0], image) for name, image in zip(parts, images, strict=True)][1:]
        every: dict[str, Any] = {"questions": 0, "units": 0, "differences": differences}
        return EncoderComparison(
            encoders=tuple(described.values()), documents=c, margin=margin, notes=tuple(notes), **every
        )
    search = retrieval.Relevance(np.arange(q) + c, np.arange(c), *links)
    rankings = {name: Image(np.concatenate(both)) for name, both in parts.items()}
    scores = {name: quality_scores(image, search) for name, image in rankings.items()}
    kept = np.flatnonzero([len(documents) > 0 for documents, _ in search.graded])
    if len(kept) < 2:
        raise InputError.at("relevance", f"at least 2 questions need a relevant document, got {len(kept)}")
    groups = together(connected(np.stack([links[0] + c, links[1]], axis=1), c + q), kept + c)[kept + c]
    first, *others = parts
    differences = judge({name: scores[name] for name in (first, *others)}, groups, margin)
    judged = []
    for one in differences:
        change = scores[one.name][:, 0] - scores[first][:, 0]
        falling = [row for row in np.argsort(change, kind="stable")[:WORSE] if change[row] < -1e-9]
        pair = [_hits(rankings[name], search, kept[falling], names) for name in (first, one.name)]
        worse = [
            Question(
                question=names.questions[kept[row]],
                text=None if names.question_texts is None else names.question_texts[kept[row]],
                before=scores[first][row, 0],
                after=scores[one.name][row, 0],
                hits_before=before,
                hits_after=after,
            )
            for row, before, after in zip(falling, *pair, strict=True)
        ]
        judged.append(one.model_copy(update={"worse": tuple(worse)}))
    if len(kept) < q:
        notes = (*notes, f"{q - len(kept):,} of {q:,} questions left out: no document is relevant to them.")
    return EncoderComparison(
        encoders=tuple(
            one.model_copy(
                update={"quality": dict(zip(QUALITIES, map(_ends, scores[name].T, [groups] * 3), strict=True))}
            )
            for name, one in described.items()
        ),
        differences=tuple(judged),
        questions=len(kept),
        documents=c,
        units=len(np.unique(groups)),
        margin=margin,
        notes=tuple(notes),
    )


def judge(scores: Mapping[str, Matrix], groups: NDArray[np.intp], margin: float = MARGIN) -> list[Difference]:
    """The verdicts on all but the first encoder.

    Args:
        scores: name → (q, 3) nDCG@10, recall@10 and MRR@10 of each question, from 0 to 1.
        groups: (q,) the unit of each question.
    """
    (first, before), *others = scores.items()
    changes = {name: np.where(np.abs(after - before) < 1e-9, 0.0, after - before) for name, after in others}
    tests = [_test(change[:, 0], groups) for change in changes.values()]
    made = []
    for (name, change), p, q in zip(changes.items(), tests, holm(tests), strict=True):
        one = Difference(
            name=name,
            change=dict(zip(QUALITIES, map(_ends, change.T, [groups] * 3, [-1.0] * 3), strict=True)),
            wins=int((change[:, 0] > 0).sum()),
            ties=int((change[:, 0] == 0).sum()),
            losses=int((change[:, 0] < 0).sum()),
            p=None if np.isnan(p) else float(p),
            p_holm=None if np.isnan(q) else float(q),
            at_most=_at_most(change[:, 0], groups, (1 - LEVEL) / len(changes)),
        )
        means = [float(scores[each][:, 0].mean()) for each in (first, name)]
        made.append(_spoken(one, first, means, groups, margin, len(changes)))
    return made


def _spoken(
    one: Difference, first: str, means: Sequence[float], groups: NDArray[np.intp], margin: float, tests: int
) -> Difference:
    """The difference with its outcome and sentence."""
    value, low, high = one.change["ndcg10"]
    units = len(np.unique(groups))
    harmless, outcome = one.at_most <= margin and units >= _FEWEST, cast(Outcome, "cannot tell")
    if one.p_holm is not None and one.p_holm < 1 - LEVEL and units >= _FEWEST:
        outcome = "higher" if value > 0 else "lower"
    elif harmless:
        outcome = "no harm"
    against = f"nDCG@10 {decimals(means[1])} against {decimals(means[0])}"
    ends = f"95 % interval {points(low).split()[0]} to {points(high)}"
    over = f" after Holm's correction for {tests} comparisons" * (tests > 1)
    no_harm = f"no harm above your margin of {points(margin)}: with 95 % confidence at most {points(max(one.at_most, 0.0))} worse"
    name, p, count = shortened(one.name, 60), one.p_holm or 0.0, f"{len(groups):,} questions"
    if outcome in ("higher", "lower"):
        size = f"{points(abs(value))} {'more' if value > 0 else 'less'}"
        tested = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
        text = f"{name} ranks {outcome} than {first}: {against}, {size} ({ends}, {count}, {tested}{over})."
        text += f" Still {no_harm}." if harmless and outcome == "lower" else ""
    elif harmless:
        text = f"{name} does {no_harm} than {first} ({against}, {ends}, {count})."
    else:
        text = (
            f"Cannot tell whether {name} ranks higher or lower than {first}: {against} ({ends}, {count}), "
            f"and a fall of {points(one.at_most)} is not excluded{_needed(one, margin, units)}."
        )
    return one.model_copy(update={"outcome": outcome, "harmless": harmless, "sentence": text})


def _needed(one: Difference, margin: float, units: int) -> str:
    """How many questions would exclude harm, if the change stays as it is."""
    value, low, _ = one.change["ndcg10"]
    if value + margin <= 0:
        return ""
    # the bound falls about as 1/√n, as the interval does
    times = (max(one.at_most + value, value - low) / (margin + value)) ** 2
    return f"; about {int(float(f'{units * times:.1e}')):,} independent questions would decide" if times < 1_000 else ""


def points(value: float) -> str:
    """A part of 1 as points of 100: `1 point`, `−0.6 points`."""
    text = decimals(100 * value, 1)
    text = text.removesuffix(".0")
    return f"{text} point{'' if text in ('1', '−1') else 's'}"


# ------------------------------------------------------------------------------------------------------- statistics


class _Sums(NamedTuple):
    """The mean of values, its standard error over units, and the degrees of freedom."""

    mean: float
    error: float
    freedom: int


def _sums(values: Matrix, groups: NDArray[np.intp]) -> _Sums:
    mean = float(values.mean())
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], values - mean) / len(values)
    units = len(sums)
    return _Sums(mean, math.sqrt(float(sums @ sums) * units / max(units - 1, 1)), units - 1)


def _ends(values: Matrix, groups: NDArray[np.intp], least: float = 0.0) -> Ends:
    """A mean with its interval, within [least, 1]."""
    from scipy import stats

    mean, error, freedom = _sums(values, groups)
    reach = float(stats.t.ppf((1 + LEVEL) / 2, max(freedom, 1))) * error
    return mean, max(mean - reach, least), min(mean + reach, 1.0)


def _test(change: Matrix, groups: NDArray[np.intp]) -> float:
    """p of Student's t-test of no change; nan where nothing varies."""
    from scipy import stats

    mean, error, freedom = _sums(change, groups)
    return float(2 * stats.t.sf(abs(mean) / error, freedom)) if error > 1e-12 and freedom > 0 else math.nan


def _at_most(change: Matrix, groups: NDArray[np.intp], tail: float) -> float:
    """The fall that is not exceeded, with a confidence of 1 − tail. With units of one question and change 0 or −1, it is the bound of
    Clopper & Pearson (1934)."""
    codes = np.unique(groups, return_inverse=True)[1]
    sums, counts = np.bincount(codes, change), np.bincount(codes).astype(float)
    sums, counts = np.append(sums, -counts.mean()), np.append(counts, counts.mean())
    generator, means = np.random.default_rng(0), []
    for _ in range(0, _DRAWS, 500):
        weights = generator.standard_exponential((500, len(sums)))
        means.append(weights @ sums / (weights @ counts))
    return float(-np.quantile(np.concatenate(means), tail))


# ------------------------------------------------------------------------------------------------------- rankings


def quality_scores(image: Image, search: retrieval.Relevance) -> Matrix:
    """(q, 3) qualities of each question with a relevant document."""
    found = retrieval.measure(image, search, _SLUGS)
    return np.stack([cast(Mean, found[slug]).values for slug in _SLUGS], axis=1)


def _hits(
    image: Image, search: retrieval.Relevance, questions: NDArray[np.int64], names: Names
) -> list[tuple[Hit, ...]]:
    """The first documents of these questions."""
    if not len(questions):
        return []
    cosines = image.unit[search.queries[questions]] @ image.unit[search.documents].T
    found = []
    for question, row, near in zip(questions, cosines, top(cosines, _TOP), strict=True):
        relevant = set(search.graded[question][0].tolist())
        found.append(
            tuple(
                Hit(
                    document=names.documents[place],
                    text=None if names.document_texts is None else shortened(names.document_texts[place], 400),
                    cosine=float(row[place]),
                    relevant=int(place) in relevant,
                )
                for place in near[np.argsort(-row[near], kind="stable")]
            )
        )
    return found


def _neighbours(name: str, before: Image, after: Image) -> Difference:
    """How far neighbours agree; which of them are right is not known."""
    found = interval(overlap(before, after))
    if found.value is None or found.low is None or found.high is None:
        return Difference(
            name=name, sentence=f"{name}: neighbours cannot be compared. {found.reason or 'Too few rows'}."
        )
    ends = found.value, max(found.low, 0.0), min(found.high, 1.0)
    shown = [f"{100 * end:.0f}" for end in ends]
    text = (
        f"{name} finds {shown[0]} % of each row's ten nearest rows (95 % interval {shown[1]} to {shown[2]} %, {found.n:,} rows). "
        "Which neighbours are right is not known without questions and relevance."
    )
    return Difference(name=name, neighbours=ends, sentence=text)


def _noise_floor(x: NDArray[Any], c: int, links: _Links | None) -> Ends | None:
    """99 % of unrelated pairs lie below."""
    try:
        rows, kept = checked(x)
        relation = None
        if links is not None:
            relation = relation_of(np.stack([links[0] + c, links[1]], axis=1), None, len(x))
            relation = relation.among(kept) if relation is not None else None
            if relation is None or len(relation.pairs) < FEWEST_RELATED:
                return None
        found = pairs_of(rows, relation, np.random.default_rng(0), _FLOOR_ROWS).cosines(rows)
        if not len(found.unrelated):
            return None
        level = found.level(0.99)
    except InputError:  # too few rows or pairs
        return None
    return level.cosine, level.low, level.high


_Links = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Question, document and grade of each relevant pair."""


def _links(relevance: ArrayLike | None, c: int, q: int) -> _Links | None:
    if relevance is None or not q:
        if relevance is not None or q:
            raise InputError.at("relevance", "questions and relevance go together; give both, or documents only")
        return None
    given = np.asarray(relevance)
    if given.ndim != 2 or given.shape[1] not in (2, 3) or given.dtype.kind not in "fiu":
        raise InputError.at("relevance", f"expected rows of question, document and grade, got the shape {given.shape}")
    grades = given[:, 2].astype(float) if given.shape[1] == 3 else np.ones(len(given))
    rows = given[:, :2].astype(np.int64)
    if not np.isfinite(grades).all() or (rows != given[:, :2]).any():
        raise InputError.at("relevance", "expected row numbers and finite grades")
    rows, grades = rows[grades > 0], grades[grades > 0]
    for column, (side, count) in enumerate((("questions", q), ("documents", c))):
        if len(rows) and not (rows[:, column].min() >= 0 and rows[:, column].max() < count):
            ends = f"{rows[:, column].min()} to {rows[:, column].max()}"
            raise InputError.at("relevance", f"{side} are numbered from 0 to {count - 1}, got {ends}")
    if len(np.unique(rows, axis=0)) < len(rows):
        raise InputError.at("relevance", "the same question and document are given twice")
    return rows[:, 0], rows[:, 1], grades


def _rows(name: str, documents: ArrayLike, questions: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Documents and questions of one encoder as finite float arrays."""
    found = [np.asarray(part) for part in (documents, np.empty((0, 0), np.float32) if questions is None else questions)]
    found = [part if part.dtype.kind == "f" else part.astype(np.float64) for part in found]
    if questions is None:
        found[1] = np.empty((0, found[0].shape[-1]), found[0].dtype)
    if any(part.ndim != 2 for part in found) or len({part.shape[1] for part in found}) > 1:
        shapes = " and ".join(str(part.shape) for part in found)
        raise InputError.at("encoders", f"'{name}' needs (documents, d) and (questions, d), got the shapes {shapes}")
    if len(found[0]) < 2 or not all(np.isfinite(part).all() for part in found):
        raise InputError.at("encoders", f"'{name}' needs at least 2 documents, and finite numbers only")
    return found[0], found[1]


# ------------------------------------------------------------------------------------------------------------ sets


def of_sets(
    sets: Mapping[str, VectorSet], margin: float = MARGIN, milliseconds: Mapping[str, float] | None = None
) -> EncoderComparison:
    """Compare stored sets, whose rows are matched by id where they have ids, else by their order. Without relevance, neighbours only.

    Raises:
        InputError: as `compare`; sets that share no rows.
    """
    first = next(iter(sets.values()))
    notes = list(dict.fromkeys(note for one in sets.values() for note in one.notes))
    order = [np.arange(one.n) for one in sets.values()]
    if all("id" in one.columns for one in sets.values()):
        places = [{name: row for row, name in enumerate(one.columns["id"])} for one in sets.values()]
        common = [name for name in places[0] if all(name in other for other in places)]
        order = [np.array([place[name] for name in common], dtype=np.intp) for place in places]
        missing = [name for place in places for name in place if any(name not in other for other in places)]
        if missing:
            shown = ", ".join(shortened(name, 30) for name in dict.fromkeys(missing[:3]))
            notes.append(f"{len(set(missing)):,} ids are not in all files and left out, such as {shown}.")
    if len({len(rows) for rows in order}) > 1 or len(order[0]) < 2:
        counts = ", ".join(f"{one.n:,}" for one in sets.values())
        raise InputError.at("encoders", f"the files do not hold the same rows ({counts} rows); give them a column 'id'")
    pairs = next((one.pairs for one in sets.values() if one.relation == "relevance"), None)
    if pairs is None:
        parts: dict[str, Any] = {
            name: (one.points[rows], None) for (name, one), rows in zip(sets.items(), order, strict=True)
        }
        return compare(parts, margin=margin, milliseconds=milliseconds, notes=notes)
    row_of = {name: row for row, name in enumerate(first.columns["id"].iloc[order[0]])}
    known = pairs[pairs["left"].isin(row_of) & pairs["right"].isin(row_of)]
    left, right = (known[side].map(row_of).to_numpy(np.int64) for side in ("left", "right"))
    groups = first.columns["group"].iloc[order[0]].to_numpy() if "group" in first.columns else None
    marked = groups is not None and bool((groups == "document").any())
    documents = np.flatnonzero(groups == "document") if marked else np.setdiff1d(np.arange(len(row_of)), left)
    questions = np.unique(left)
    number = np.full(len(row_of), -1)
    number[documents], number[questions] = np.arange(len(documents)), np.arange(len(questions))
    links = np.stack([number[left], number[right], known["score"].to_numpy(float)], axis=1)
    columns = first.columns.iloc[order[0]]
    text = columns["text"].to_numpy() if "text" in columns else None
    ids = columns["id"].to_numpy()
    sides = (documents, questions)
    texts: list[Any] = [None if text is None else text[side] for side in sides]
    names = Names(ids[documents].tolist(), ids[questions].tolist(), *texts)
    parts = {
        name: (one.points[rows[documents]], one.points[rows[questions]])
        for (name, one), rows in zip(sets.items(), order, strict=True)
    }
    return compare(
        parts,
        links[links[:, 1] >= 0],
        margin=margin,
        milliseconds=milliseconds,
        names=names,
        notes=notes,
    )
