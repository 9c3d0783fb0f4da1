"""Encoders compared on one search: the same questions and documents, ranked by the cosines of each.

    print(isoviz.compare({"old": (documents, questions), "new": (other_documents, other_questions)}, relevance).sentences)

The first encoder is what the others are compared with, question by question. Questions that share a relevant document are one unit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, computed_field

from isoviz.errors import InputError, shortened
from isoviz.formatting import decimals
from isoviz.readouts import retrieval
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image
from isoviz.readouts.ruler.pairs import checked, connected, pairs_of, relation_of, together
from isoviz.readouts.slices import Estimate, Slice, Slicing, compared, slicing
from isoviz.statistics.paired_bootstrap import Mean, interval
from isoviz.statistics.two_samples import holm
from isoviz.vectors.searches import DOCUMENT
from isoviz.vectors.sets import VectorSet

Matrix = NDArray[np.float64]
Rows = NDArray[np.integer[Any]]
Ends = tuple[float, float, float]
"""A value and its 95 % interval."""
Named = tuple[str, str | None]
"""Id and text of a row."""
Outcome = Literal["higher", "lower", "no harm", "cannot tell"]

QUALITIES: Final = {"ndcg10": "nDCG@10", "recall10": "Recall@10", "mrr": "MRR@10"}
MOST: Final = 6
MARGIN: Final = 0.01
ALPHA: Final = 0.05
_SLUGS: Final = ("ndcg_cosine", "recall10_cosine", "mrr_cosine")
_WORSE, _TOP = 10, 3
"""Questions shown of those that get worse, and documents of each."""
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
        outcome: `higher` or `lower` if p_holm < 0.05, else `no harm` if `harmless`: `at_most` is within the margin.
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
    """What `compare` says. `units`: questions, where those that share a relevant document count once. `slices`: of the questions, each
    encoder's change of nDCG@10."""

    encoders: tuple[Encoder, ...]
    differences: tuple[Difference, ...]
    questions: int
    documents: int
    units: int
    margin: float
    notes: tuple[str, ...] = ()
    slices: tuple[Slice, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentences(self) -> tuple[str, ...]:
        """A verdict on each encoder."""
        return tuple(one.sentence for one in self.differences)


def compare(
    encoders: Mapping[str, tuple[ArrayLike, ArrayLike | None]],
    relevance: ArrayLike | None = None,
    *,
    margin: float = MARGIN,
    milliseconds: Mapping[str, float] | None = None,
    names: Sequence[Named] | None = None,
    notes: Sequence[str] = (),
    by: Slicing | None = None,
) -> EncoderComparison:
    """Which encoder ranks higher on these questions? Paired nDCG@10, recall@10 and MRR@10 of cosines, and a verdict on each.

    Intervals and tests are those of Student's t over units. The bound of *no harm* is the quantile of a Bayesian bootstrap (Rubin 1981)
    that counts one more unit, which loses everything: few questions, none of which changes, exclude no harm. Tests are corrected by
    Holm's method, bounds by Bonferroni's.

    Args:
        encoders: name → vectors of the documents (c, d) and of the questions (q, d); two to six, each with its own d. Without questions
            (None), only neighbours among documents are compared.
        relevance: (g, 2) or (g, 3): the row of a question, that of a document (from 0), and the grade (default: 1); above 0 is relevant.
        margin: largest fall of nDCG@10 that does no harm.
        milliseconds: that encoding a text took, by name.
        names: c + q ids and texts, of documents and then of questions; None for row numbers from 1.
        notes: what a reader must know, kept in the result.
        by: the slice of each question.

    Raises:
        InputError: (a ValueError) fewer than two encoders or more than six, vectors that do not fit, or no relevant document.
    """
    if not 2 <= len(encoders) <= MOST:
        raise InputError.at("encoders", f"give two to {MOST} encoders, got {len(encoders)}")
    if not 0 < margin < 1:
        raise InputError.at("margin", f"must be above 0 and below 1, which is 100 points (got {margin:g})")
    parts = {name: _checked(name, *both) for name, both in encoders.items()}
    sizes = {name: (len(documents), len(questions)) for name, (documents, questions) in parts.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{c:,} and {q:,}" if q else f"{c:,}" for c, q in sizes.values())
        raise InputError.at("encoders", f"all need the same documents and questions, in the same order; got {shown}")
    first, (c, q) = next(iter(sizes.items()))
    names = names or [(str(number), None) for size in (c, q) for number in range(1, size + 1)]
    search = _search(relevance, c, q)
    if by is not None and search is None:
        raise InputError.at("by", "slices are of questions; give questions and relevance")
    sliced: list[Slice] = []
    points = {name: np.concatenate(both) for name, both in parts.items()}
    images = {name: Image(every) for name, every in points.items()}
    if search is None:
        units, questions, qualities = 0, np.zeros(0, np.int64), {name: dict[str, Ends]() for name in points}
        differences = [_neighbours(name, images[first], image) for name, image in images.items() if name != first]
    else:
        questions = np.flatnonzero([len(documents) > 0 for documents, _ in search.graded])
        if len(questions) < 2:
            raise InputError.at("relevance", f"at least 2 questions need a relevant document, got {len(questions)}")
        links = np.stack([search.query + c, search.document], axis=1)
        groups = together(connected(links, c + q), questions + c)[questions + c]
        units, scores = len(np.unique(groups)), {name: quality_scores(one, search) for name, one in images.items()}
        qualities = {name: _ends(values, groups) for name, values in scores.items()}
        differences = [
            one.model_copy(update={"worse": _worse(one.name, first, scores, images, search, questions, names)})
            for one in judge(scores, groups, margin)
        ]
        if by is not None:
            sliced = _by_slice(scores, groups, Slicing(by.codes[questions], by.names))
        if len(questions) < q:
            notes = (*notes, f"{q - len(questions):,} of {q:,} questions left out: no document is relevant to them.")
    described = [
        Encoder(
            name=name,
            d=every.shape[1],
            bytes=every.shape[1] * every.itemsize,
            milliseconds=(milliseconds or {}).get(name),
            noise_floor=_noise_floor(every, c, search),
            quality=qualities[name],
        )
        for name, every in points.items()
    ]
    return EncoderComparison(
        encoders=tuple(described),
        differences=tuple(differences),
        questions=len(questions),
        documents=c,
        units=units,
        margin=margin,
        notes=tuple(notes),
        slices=tuple(sliced),
    )


def judge(scores: Mapping[str, Matrix], groups: Rows, margin: float = MARGIN) -> list[Difference]:
    """The verdicts on all but the first encoder.

    Args:
        scores: name → (q, 3) nDCG@10, recall@10 and MRR@10 of each question, from 0 to 1.
        groups: (q,) the unit of each question.
    """
    from scipy import stats

    (first, before), *others = scores.items()
    made, tests = [], []
    for name, after in others:
        change = np.where(np.abs(after - before) < 1e-9, 0.0, after - before)
        mean, error, freedom = _mean(change[:, 0], groups)
        tests.append(2 * stats.t.sf(abs(mean) / error, freedom) if error > 1e-12 else np.nan)
        one = Difference(
            name=name,
            change=_ends(change, groups, -1.0),
            wins=int((change[:, 0] > 0).sum()),
            ties=int((change[:, 0] == 0).sum()),
            losses=int((change[:, 0] < 0).sum()),
            at_most=_at_most(change[:, 0], groups, ALPHA / len(others)),
        )
        made.append((one, f"nDCG@10 {decimals(after[:, 0].mean())} against {decimals(before[:, 0].mean())}"))
    return [
        _decided(
            one.model_copy(update={} if np.isnan(p) else {"p": float(p), "p_holm": float(q)}),
            first, against, groups, margin, len(others),
        )
        for (one, against), p, q in zip(made, tests, holm(tests), strict=True)
    ]  # fmt: skip


def _decided(one: Difference, first: str, against: str, groups: Rows, margin: float, tests: int) -> Difference:
    """The difference with its outcome and sentence."""
    value, low, high = one.change["ndcg10"]
    units, name = len(np.unique(groups)), shortened(one.name, 60)
    enough, p = units >= _FEWEST, 1.0 if one.p_holm is None else one.p_holm
    harmless = one.at_most <= margin and enough
    ends = f"95 % interval {in_points(low).split()[0]} to {in_points(high)}, {len(groups):,} questions"
    no_harm = f"no harm above your margin of {in_points(margin)}: with 95 % confidence at most {in_points(max(one.at_most, 0.0))} worse"
    outcome: Outcome = "no harm" if harmless else "cannot tell"
    if p < ALPHA and enough:
        outcome = "higher" if value > 0 else "lower"
        size = f"{in_points(abs(value))} {'more' if value > 0 else 'less'}"
        tested = f"p {'< 0.001' if p < 0.001 else f'= {p:.3f}'}" + f" by Holm for {tests} comparisons" * (tests > 1)
        text = f"{name} ranks {outcome} than {first}: {against}, {size} ({ends}, {tested})."
        text += f" Still {no_harm}." if harmless and outcome == "lower" else ""
    elif harmless:
        text = f"{name} does {no_harm} than {first} ({against}, {ends})."
    else:
        needed = ""
        if value + margin > 0:  # the bound falls about as 1/√n, as the interval does
            count = units * (max(one.at_most + value, value - low) / (margin + value)) ** 2
            needed = f"; about {float(f'{count:.1e}'):,.0f} independent questions would decide" if count < 1e6 else ""
        text = (
            f"Cannot tell whether {name} ranks higher or lower than {first}: {against} ({ends}), and a fall of "
            f"{in_points(one.at_most)} is not excluded{needed}."
        )
    return one.model_copy(update={"outcome": outcome, "harmless": harmless, "sentence": text})


def in_points(value: float) -> str:
    """A part of 1 as points of 100: `1 point`, `−0.6 points`."""
    text = decimals(100 * value, 1).removesuffix(".0")
    return f"{text} point{'' if text in ('1', '−1') else 's'}"


# ------------------------------------------------------------------------------------------------------- statistics


def _mean(values: Matrix, groups: Rows) -> tuple[float, float, int]:
    """The mean of values, its standard error over units, and the degrees of freedom."""
    mean = float(values.mean())
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], values - mean) / len(values)
    freedom = max(len(sums) - 1, 1)
    return mean, math.sqrt(float(sums @ sums) * len(sums) / freedom), freedom


def _ends(values: Matrix, groups: Rows, least: float = 0.0) -> dict[str, Ends]:
    """The mean of each quality with its interval, within [least, 1], from (q, 3)."""
    from scipy import stats

    found = {}
    for name, column in zip(QUALITIES, values.T, strict=True):
        mean, error, freedom = _mean(column, groups)
        reach = float(stats.t.ppf(1 - ALPHA / 2, freedom)) * error
        found[name] = mean, max(mean - reach, least), min(mean + reach, 1.0)
    return found


def _at_most(change: Matrix, groups: Rows, tail: float) -> float:
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


def _by_slice(scores: Mapping[str, Matrix], groups: Rows, by: Slicing) -> list[Slice]:
    """The change of nDCG@10 in each slice against that of all other questions."""
    (_, before), *others = scores.items()
    measures = {}
    for name, after in others:
        change = after[:, 0] - before[:, 0]
        inside = [by.codes == code for code in range(len(by.names))]
        measures[f"{name}, change of nDCG@10"] = [
            (_of(change, groups, own), _of(change, groups, ~own)) for own in inside
        ]
    return compared(measures, by.names)


def _of(values: Matrix, groups: Rows, some: NDArray[np.bool_]) -> Estimate:
    """The mean of some questions; `n` counts units."""
    if not some.any():
        return Estimate(math.nan, math.nan, 0)
    mean, error, freedom = _mean(values[some], groups[some])
    return Estimate(mean, error, freedom + 1)


# ------------------------------------------------------------------------------------------------------- rankings


def quality_scores(image: Image, search: retrieval.Relevance) -> Matrix:
    """(q, 3) qualities of each question with a relevant document."""
    found = retrieval.measure(image, search)
    return np.stack([cast(Mean, found[slug]).values for slug in _SLUGS], axis=1)


def _worse(
    name: str,
    first: str,
    scores: Mapping[str, Matrix],
    images: Mapping[str, Image],
    search: retrieval.Relevance,
    questions: Rows,
    names: Sequence[Named],
) -> tuple[Question, ...]:
    """The questions that lose most."""
    before, after = scores[first][:, 0], scores[name][:, 0]
    rows = np.argsort(after - before, kind="stable")[:_WORSE]
    made = []
    for row in rows[(after - before)[rows] < -1e-9]:
        question, text = names[search.queries[questions[row]]]
        hits = [_hits(images[each], search, questions[row], names) for each in (first, name)]
        values = {"before": before[row], "after": after[row], "hits_before": hits[0], "hits_after": hits[1]}
        made.append(Question(question=question, text=text, **values))
    return tuple(made)


def _hits(image: Image, search: retrieval.Relevance, question: int, names: Sequence[Named]) -> tuple[Hit, ...]:
    """The first documents of a question."""
    cosines = image.unit[search.documents] @ image.unit[search.queries[question]]
    near = np.argsort(-cosines, kind="stable")[:_TOP]
    relevant = search.graded[question][0]
    return tuple(
        Hit(
            document=names[place][0],
            text=None if (text := names[place][1]) is None else shortened(text, 400),
            cosine=float(cosines[place]),
            relevant=bool((relevant == place).any()),
        )
        for place in near
    )


def _neighbours(name: str, before: Image, after: Image) -> Difference:
    """How far neighbours agree; which of them are right is not known."""
    found = interval(overlap(before, after))
    if found.value is None or found.low is None or found.high is None:
        why = found.reason or "too few rows"
        return Difference(name=name, sentence=f"{name}: neighbours cannot be compared: {why}.")
    ends = found.value, max(found.low, 0.0), min(found.high, 1.0)
    value, low, high = (f"{100 * end:.0f}" for end in ends)
    text = (
        f"{name} finds {value} % of each row's ten nearest rows (95 % interval {low} to {high} %, {found.n:,} rows). "
        "Which neighbours are right is not known without questions and relevance."
    )
    return Difference(name=name, neighbours=ends, sentence=text)


def _noise_floor(x: NDArray[Any], c: int, search: retrieval.Relevance | None) -> Ends | None:
    """99 % of unrelated pairs lie below; None for too few rows or pairs."""
    try:
        rows, kept = checked(x)
        links = None if search is None else np.stack([search.query + c, search.document], axis=1)
        relation = relation_of(links, None, len(x))
        found = pairs_of(rows, relation and relation.among(kept), np.random.default_rng(0), _FLOOR_ROWS).cosines(rows)
        level = found.level(0.99) if len(found.unrelated) else None
    except InputError:
        return None
    return None if level is None else (level.cosine, level.low, level.high)


def _search(relevance: ArrayLike | None, c: int, q: int) -> retrieval.Relevance | None:
    """The relevance of c documents to q questions, whose rows follow them; None without questions."""
    if relevance is None and not q:
        return None
    if relevance is None or not q:
        raise InputError.at("relevance", "questions and relevance go together; give both, or documents only")
    given = np.asarray(relevance, np.float64)
    if given.ndim != 2 or given.shape[1] not in (2, 3) or not np.isfinite(given).all() or (given[:, :2] % 1).any():
        raise InputError.at("relevance", f"expected rows of question, document and grade, got the shape {given.shape}")
    given = given[given[:, 2] > 0] if given.shape[1] == 3 else np.append(given, np.ones((len(given), 1)), axis=1)
    rows = given[:, :2].astype(np.int64)
    for side, numbers, count in (("questions", rows[:, 0], q), ("documents", rows[:, 1], c)):
        if ((numbers < 0) | (numbers >= count)).any():
            ends = f"{numbers.min()} to {numbers.max()}"
            raise InputError.at("relevance", f"{side} are numbered from 0 to {count - 1}, got {ends}")
    if len(np.unique(rows, axis=0)) < len(rows):
        raise InputError.at("relevance", "the same question and document are given twice")
    return retrieval.Relevance(np.arange(q) + c, np.arange(c), rows[:, 0], rows[:, 1], given[:, 2])


def _checked(name: str, documents: ArrayLike, questions: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Documents and questions of one encoder as finite float arrays."""
    first = np.asarray(documents)
    both = first, np.empty((0, first.shape[-1]), first.dtype) if questions is None else np.asarray(questions)
    shapes = " and ".join(str(part.shape) for part in both)
    if any(part.ndim != 2 or part.dtype.kind not in "fiu" for part in both) or both[0].shape[1] != both[1].shape[1]:
        raise InputError.at("encoders", f"'{name}' needs (documents, d) and (questions, d), got the shapes {shapes}")
    if len(first) < 2 or not all(np.isfinite(part).all() for part in both):
        raise InputError.at("encoders", f"'{name}' needs at least 2 documents, and finite numbers only")
    made = [part if part.dtype.kind == "f" else part.astype(np.float64) for part in both]
    return made[0], made[1]


# ------------------------------------------------------------------------------------------------------------ sets


def of_sets(
    sets: Mapping[str, VectorSet],
    margin: float = MARGIN,
    milliseconds: Mapping[str, float] | None = None,
    by: str | None = None,
) -> EncoderComparison:
    """Compare stored sets, whose rows are matched by id where they have ids, else by their order. Without relevance, neighbours only.

    Args:
        by: slices of the questions: `length`, or the column that was read as their label.

    Raises:
        InputError: as `compare`; sets that share no rows.
    """
    held = list(sets.values())
    more: dict[str, Any] = {"margin": margin, "milliseconds": milliseconds}
    notes = list(dict.fromkeys(note for one in held for note in one.notes))
    order = [np.arange(one.n) for one in held]
    if all("id" in one.columns for one in held):
        places = [{name: row for row, name in enumerate(one.columns["id"])} for one in held]
        common = [name for name in places[0] if all(name in other for other in places)]
        order = [np.array([place[name] for name in common], dtype=np.intp) for place in places]
        shared = set(common)
        missing = list(dict.fromkeys(name for place in places for name in place if name not in shared))
        if missing:
            shown = ", ".join(shortened(name, 30) for name in missing[:3])
            notes.append(f"{len(missing):,} ids are not in all files and left out, such as {shown}.")
    columns = held[0].columns.iloc[order[0]]
    pairs = next((one.pairs for one in held if one.relation == "relevance"), None)
    if pairs is None:
        if by is not None:
            raise InputError.at("by", "slices are of questions; give questions and relevance")
        parts: dict[str, Any] = {
            name: (one.points[rows], None) for (name, one), rows in zip(sets.items(), order, strict=True)
        }
        return compare(parts, **more, notes=notes)
    row_of = {name: row for row, name in enumerate(columns["id"])}
    known = pairs[pairs["left"].isin(row_of) & pairs["right"].isin(row_of)]
    left, right = (known[side].map(row_of).to_numpy(np.int64) for side in ("left", "right"))
    marked = columns["group"].to_numpy() == DOCUMENT if "group" in columns else np.zeros(len(columns), bool)
    documents = np.flatnonzero(marked) if marked.any() else np.setdiff1d(np.arange(len(columns)), left)
    questions = np.unique(left)
    number = np.full(len(columns), -1)
    number[documents], number[questions] = np.arange(len(documents)), np.arange(len(questions))
    links = np.stack([number[left], number[right], known["score"].to_numpy(float)], axis=1)
    texts = columns["text"] if "text" in columns else [None] * len(columns)
    named = list(zip(columns["id"], texts, strict=True))
    parts = {
        name: (one.points[rows[documents]], one.points[rows[questions]])
        for (name, one), rows in zip(sets.items(), order, strict=True)
    }
    chosen = [named[row] for row in (*documents, *questions)]
    if by is not None:
        more["by"] = slicing(columns.iloc[questions].rename(columns={"label": by}), by)
    return compare(parts, links[links[:, 1] >= 0], names=chosen, notes=notes, **more)
