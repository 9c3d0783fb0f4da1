"""How often `isoviz.compare` errs: `python benchmarks/compare_verdicts.py [--repeats N] [--sizes N …]`.

A pool of questions gets real scores: two encoders that see the same made documents through noise of the same size. Where each question's
two scores are exchanged at random, no encoder is higher (false alarms). Where, in addition, a share of the second encoder's questions
loses everything, its loss is the margin exactly (the error of *no harm*). Where it loses nothing and few questions change, *no harm* is
right (its power). The 95 % interval of the change should cover 0 in the first case, and the loss in the second. Questions are drawn from
the pool alone, or with four others of the same document.
"""

from __future__ import annotations

import argparse

import numpy as np

from isoviz.readouts import encoders
from isoviz.readouts.image import Image
from isoviz.readouts.retrieval import Relevance

MARGIN = 0.01
DOCUMENTS, QUESTIONS_OF_EACH, D = 2_000, 5, 32
SIZES = (50, 200, 1_000)


def pool(noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(2, q, 3) scores by both encoders, and the document of each question; questions of a document share a part of their noise."""
    generator = np.random.default_rng(seed)
    documents = generator.standard_normal((DOCUMENTS, D))
    of = np.repeat(np.arange(DOCUMENTS), QUESTIONS_OF_EACH)
    shared = np.repeat(generator.standard_normal((DOCUMENTS, D)), QUESTIONS_OF_EACH, axis=0)
    questions = documents[of] + 0.8 * shared + 0.8 * generator.standard_normal((len(of), D))
    every = np.concatenate([questions, documents])
    places = np.arange(len(every))
    search = Relevance(places[: len(of)], places[len(of) :], np.arange(len(of)), of, np.ones(len(of)))
    seen = (every + noise * generator.standard_normal(every.shape) for _ in range(2))
    return np.stack([encoders.quality_scores(Image(one), search) for one in seen]), of


def drawn(n: int, alone: bool, generator: np.random.Generator) -> np.ndarray:
    """Places of n questions: of n documents, or all of n/5."""
    if alone:
        return generator.choice(DOCUMENTS, n, replace=False) * QUESTIONS_OF_EACH
    chosen = generator.choice(DOCUMENTS, n // QUESTIONS_OF_EACH, replace=False)
    return (chosen[:, None] * QUESTIONS_OF_EACH + np.arange(QUESTIONS_OF_EACH)).ravel()


def shares(scores: np.ndarray, of: np.ndarray, n: int, alone: bool, lost: float, repeats: int) -> dict[str, float]:
    """The share of each outcome over repeated draws of questions."""
    generator, found = np.random.default_rng(n), dict[str, float]()
    mean = scores[..., 0].mean()
    for _ in range(repeats):
        rows = drawn(n, alone, generator)
        # questions of one document are exchanged together, so that they stay dependent
        turned = generator.random(DOCUMENTS)[of[rows]] < 0.5
        pair = np.where(turned[:, None], scores[::-1, rows], scores[:, rows])
        fails = generator.random(n) < lost / mean
        pair[1] *= ~fails[:, None]
        one = encoders.judge({"a": pair[0], "b": pair[1]}, of[rows], MARGIN)[0]
        found[one.outcome] = found.get(one.outcome, 0) + 1 / repeats
        found["harmless"] = found.get("harmless", 0) + one.harmless / repeats
        _, low, high = one.change["ndcg10"]
        truth = -MARGIN if lost else 0.0
        found["covered"] = found.get("covered", 0) + (low <= truth <= high) / repeats
    return found


def main(repeats: int, sizes: list[int]) -> None:
    close, apart = pool(0.02, 0), pool(0.4, 1)
    print(f"{repeats:,} draws for each line; margin {encoders.in_points(MARGIN)}")
    print(
        "questions  drawn          false alarms  intervals cover  'no harm' at a loss of the margin  'no harm' without a loss"
    )
    for n in sizes:
        for alone in (True, False):
            null = shares(*apart, n, alone, 0.0, repeats)
            alarms = null.get("higher", 0) + null.get("lower", 0)
            lossy = [shares(*scores, n, alone, MARGIN, repeats) for scores in (apart, close)]
            wrong, covered = [one["harmless"] for one in lossy], (null["covered"], lossy[0]["covered"])
            right = shares(*close, n, alone, 0.0, repeats)["harmless"]
            how = "alone" if alone else "five a document"
            cells = (alarms, *covered, *wrong, right)
            line = "{:8.1f} %  {:8.1f} and {:.1f} %  {:12.1f} % to {:.1f} %  {:26.1f} %".format(
                *(100 * one for one in cells)
            )
            print(f"{n:9,}  {how:15}  {line}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=2_000)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    options = parser.parse_args()
    main(options.repeats, options.sizes)
