"""Each row's measures, against plain loops and scikit-learn."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

import isoviz
from isoviz.errors import InputError
from isoviz.metrics import hubness, reciprocity

K = 10


@pytest.fixture(scope="module")
def cloud() -> np.ndarray:
    generator = np.random.default_rng(3)
    x = generator.normal(size=(700, 6)) @ generator.normal(size=(6, 24)) + 0.2 * generator.normal(size=(700, 24)) + 0.5
    return x.astype(np.float32)


def test_every_column_is_that_of_plain_loops(cloud: np.ndarray) -> None:
    queries = cloud[:50] + 0.1
    found = isoviz.rows(cloud, queries)
    x = cloud.astype(np.float64)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    distances, near = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(unit).kneighbors(unit)
    distances, near = distances[:, 1:], near[:, 1:]
    n_k, mutual, dimension = np.zeros(700), np.zeros(700), np.zeros(700)
    for i in range(700):
        for j in near[i]:
            n_k[j] += 1
            mutual[i] += i in near[j]
        dimension[i] = (K - 1) / sum(np.log(distances[i, -1] / distances[i, j]) for j in range(K - 1))
    np.testing.assert_allclose(found.n_k, n_k)
    np.testing.assert_allclose(found.reciprocity, mutual / K)
    np.testing.assert_allclose(found.dimension, dimension, rtol=1e-4)
    np.testing.assert_array_equal(found.nearest, near[:, 0])
    np.testing.assert_allclose(found.cosine, (unit * unit[near[:, 0]]).sum(axis=1), atol=1e-6)
    np.testing.assert_allclose(found.norm, np.linalg.norm(x, axis=1))
    mean = x.mean(axis=0)
    np.testing.assert_allclose(found.to_mean, unit @ mean / np.linalg.norm(mean), atol=1e-6)
    np.testing.assert_allclose(isoviz.rows(x * 1e200).to_mean, found.to_mean, atol=1e-6)
    middle = np.median(n_k)
    np.testing.assert_allclose(found.z, (n_k - middle) / (1.4826 * np.median(np.abs(n_k - middle))))
    asked = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    hits = np.zeros(700)
    for query in asked:
        hits[np.argsort(-unit @ query)[:K]] += 1 / 50
    np.testing.assert_allclose(found.found, hits, atol=1e-12)
    apart = found.n_k - K
    assert np.mean(apart**3) / np.mean(apart**2) ** 1.5 == pytest.approx(hubness(unit))
    assert found.reciprocity.mean() == pytest.approx(reciprocity(unit))
    assert (found.copy_of == found.row).all()


def test_the_fast_search_for_the_lowest_is_a_sort() -> None:
    from isoviz.metrics.nearest import lowest

    scores = np.random.default_rng(0).normal(size=(5, 2_500)).astype(np.float32)
    np.testing.assert_array_equal(lowest(scores, 11), np.argsort(scores, axis=1)[:, :11])


def test_zeros_are_left_out_and_copies_count_once_and_share_numbers(cloud: np.ndarray) -> None:
    plain = isoviz.rows(cloud)
    more = np.concatenate([cloud, np.zeros((2, 24), np.float32), cloud[[4, 4]], cloud[7:8] * (1 + 1e-7)])
    found = isoviz.rows(more)
    assert found.row.tolist() == [*range(700), 702, 703, 704]
    np.testing.assert_allclose(found.n_k[:700], plain.n_k)
    assert found.n_k[700:].tolist() == plain.n_k[[4, 4, 7]].tolist()
    assert found.copy_of[700:].tolist() == [4, 4, 7] and found.nearest[[4, 7, 700, 702]].tolist() == [702, 704, 4, 7]
    assert found.cosine[[4, 700, 701, 702]] == pytest.approx([1] * 4, abs=1e-6)
    assert sorted(found.order("near-duplicates")[:3].tolist()) == [700, 701, 702]
    assert set(found.order("hubs")).isdisjoint([700, 701, 702])
    assert "3 rows are copies of another." in found.sentences
    assert "2 of 705 rows are zero and left out." in found.sentences
    table = found.table(np.array([700]))
    assert (table["row"][0], table["copy of"][0], table["nearest row"][0]) == (703, 5, 5)


def test_a_hub_and_rows_never_found_lead_their_lists() -> None:
    """A row at the mean of a cloud far from the origin is near to every other."""
    x = np.random.default_rng(0).normal(size=(300, 60)) + 0.5
    x[11] = x.mean(axis=0)
    found = isoviz.rows(x)
    first = found.order("hubs")[0]
    assert first == 11 and found.n_k[11] > 100 and found.z[11] > 3
    never = found.order("never found")
    assert len(never) and (found.n_k[never] == 0).all() and len(never) == (found.n_k == 0).sum()


def test_ties_share_the_last_place_in_any_order_of_rows() -> None:
    signs = np.sign(np.random.default_rng(1).normal(size=(60, 7)))
    x = np.unique(signs, axis=0)
    order = np.random.default_rng(2).permutation(len(x))
    found, shuffled = isoviz.rows(x), isoviz.rows(x[order])
    np.testing.assert_allclose(found.n_k[order], shuffled.n_k)
    np.testing.assert_allclose(found.n_k.sum(), K * len(x))


def test_bad_input_is_one_line_with_its_field(cloud: np.ndarray) -> None:
    for points, queries, field in (
        (cloud[:5], None, "points"),
        (cloud * 0, None, "points"),
        (cloud, cloud[:, :4], "queries"),
    ):
        with pytest.raises(InputError) as raised:
            isoviz.rows(points, queries)
        assert raised.value.field == field and "\n" not in str(raised.value)
