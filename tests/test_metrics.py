import inspect

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import silhouette_samples, silhouette_score

from sfumato import metrics
from sfumato.errors import DataError, ParameterError


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def blobs(rng):
    centers = np.array([[0.0, 0.0, 0.0], [8.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 0.0, 8.0]])
    labels = rng.choice(4, 400, p=[0.5, 0.3, 0.15, 0.05])
    return centers[labels] + rng.standard_normal((400, 3)), labels, centers


def slow_silhouette(X, labels):
    scores = []
    for i, x in enumerate(X):
        own = [j for j in range(len(X)) if labels[j] == labels[i] and j != i]
        if not own:
            scores.append(0.0)
            continue
        a = np.mean([np.linalg.norm(x - X[j]) for j in own])
        others = set(labels) - {labels[i]}
        b = min(np.mean([np.linalg.norm(x - y) for y in X[labels == other]]) for other in others)
        scores.append((b - a) / max(a, b))
    return np.mean(scores)


@pytest.mark.parametrize("name", metrics.__all__)
def test_every_docstring_says_that_the_score_is_not_private(name):
    doc = inspect.getdoc(getattr(metrics, name))
    assert "Privacy\n-------\nNot private" in doc
    assert " ".join(doc.split()).count("never put into a release") == 1


class TestInertia:
    def test_by_hand(self):
        assert metrics.inertia([[0.0], [1.0], [4.0], [6.0]], [[0.0], [5.0]]) == 0 + 1 + 1 + 1

    def test_one_row_and_one_centre(self):
        assert metrics.inertia([[3.0, 4.0]], [[0.0, 0.0]]) == 25.0

    @pytest.mark.parametrize(("n", "d", "k"), [(1, 1, 1), (500, 3, 7), (300, 40, 64)])
    def test_equals_brute_force(self, rng, n, d, k):
        X, centers = rng.normal(size=(n, d)), rng.normal(size=(k, d))
        expected = (cdist(X, centers) ** 2).min(axis=1).sum()
        assert metrics.inertia(X, centers) == pytest.approx(expected, rel=1e-12)

    def test_chunks_do_not_show(self, rng, monkeypatch):
        X, centers = rng.normal(size=(1_000, 2)), rng.normal(size=(5, 2))
        whole = metrics.inertia(X, centers)
        monkeypatch.setattr(metrics, "_CHUNK_ROWS", 64)
        assert metrics.inertia(X, centers) == pytest.approx(whole, rel=1e-12)

    def test_is_exact_far_from_the_origin(self):
        assert metrics.inertia([[1e9], [1e9 + 1.0]], [[1e9], [0.0]]) == 1.0

    def test_order_of_rows_and_centres_and_an_empty_cluster_change_nothing(self, rng, blobs):
        X, _, centers = blobs
        expected = metrics.inertia(X, centers)
        shuffled = metrics.inertia(rng.permutation(X), rng.permutation(centers))
        with_empty_cluster = metrics.inertia(X, [*centers, [1e6, 1e6, 1e6]])
        assert [shuffled, with_empty_cluster] == pytest.approx([expected, expected], rel=1e-12)

    def test_layout_and_type_of_the_rows_change_nothing(self, blobs):
        X = np.round(blobs[0] * 8).astype(np.int32)
        centers = blobs[2].astype(np.float32)
        expected = metrics.inertia(X.astype(float), centers)
        assert metrics.inertia(np.asfortranarray(X), np.asfortranarray(centers)) == expected
        assert metrics.inertia(np.repeat(X, 2, axis=0)[::2], centers) == expected

    @pytest.mark.parametrize(
        ("X", "centers", "match"),
        [
            ([[0.0, 1.0]], [[0.0]], "2 columns"),
            ([0.0, 1.0], [[0.0]], "`X` must be two-dimensional"),
            ([[0.0]], np.empty((0, 1)), "`centers` must be two-dimensional"),
            ([[np.nan]], [[0.0]], "finite"),
        ],
    )
    def test_refuses_tables_that_do_not_match(self, X, centers, match):
        with pytest.raises(DataError, match=match):
            metrics.inertia(X, centers)


class TestAgreementOfLabels:
    @pytest.mark.parametrize("score", [metrics.adjusted_rand, metrics.adjusted_mutual_info])
    def test_is_one_for_renamed_labels_and_zero_for_one_cluster(self, score):
        labels = [0, 0, 1, 1, 2, 2, 2]
        assert score(labels, list("ccaabbb")) == pytest.approx(1.0)
        assert score(labels, [0] * 7) == pytest.approx(0.0, abs=1e-12)

    @pytest.mark.parametrize("score", [metrics.adjusted_rand, metrics.adjusted_mutual_info])
    def test_is_symmetric_and_blind_to_the_order_of_rows(self, rng, score):
        first, second, order = rng.integers(4, size=100), rng.integers(6, size=100), rng.permutation(100)
        expected = score(first, second)
        assert score(second, first) == pytest.approx(expected, abs=1e-12)
        assert score(first[order], second[order]) == pytest.approx(expected, abs=1e-12)

    def test_adjusted_rand_by_hand(self):
        # Pairs: 2 together in both, 4 and 3 together in each, of 10; expected 4 * 3 / 10.
        assert metrics.adjusted_rand([0, 0, 0, 1, 1], [0, 0, 1, 2, 2]) == pytest.approx((2 - 0.8) / (3 - 0.8))

    @pytest.mark.parametrize(
        "score", [metrics.adjusted_rand, metrics.adjusted_mutual_info, metrics.clustering_accuracy]
    )
    @pytest.mark.parametrize(("first", "second"), [([0, 1], [0]), ([], []), ([[0, 1]], [[0, 1]])])
    def test_refuses_labels_that_do_not_match(self, score, first, second):
        with pytest.raises(DataError, match="`labels_true` and `labels_pred`"):
            score(first, second)


class TestClusteringAccuracy:
    classes = ("a", "a", "a", "b", "b", "c")
    clusters = (0, 0, 1, 1, 1, 1)

    def test_majority_by_hand(self):
        # Cluster 0 stands for a (2 of 2 rows), cluster 1 for b (2 of 4 rows).
        assert metrics.clustering_accuracy(self.classes, self.clusters) == pytest.approx(4 / 6)

    def test_two_clusters_may_share_a_class_only_by_majority(self):
        assert metrics.clustering_accuracy([0, 0, 0, 0], [0, 0, 0, 1]) == 1.0
        assert metrics.clustering_accuracy([0, 0, 0, 0], [0, 0, 0, 1], matching="one-to-one") == 0.75

    def test_one_to_one_takes_the_best_assignment_and_not_the_greedy_one(self):
        # Cluster 0 has 3 of class 0 and 2 of class 1, cluster 1 has 3 of class 0: 3 greedily, 5 at best.
        classes, clusters = [0, 0, 0, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]
        assert metrics.clustering_accuracy(classes, clusters, matching="one-to-one") == 5 / 8

    def test_one_cluster_scores_the_share_of_the_largest_class(self):
        for matching in ("majority", "one-to-one"):
            assert metrics.clustering_accuracy([0, 1, 1, 1], [5, 5, 5, 5], matching=matching) == 0.75

    def test_one_row(self):
        assert metrics.clustering_accuracy(["x"], [3]) == 1.0

    def test_majority_equals_definition_12(self, rng):
        classes, clusters = rng.integers(5, size=200), rng.integers(9, size=200)
        hits = sum(np.bincount(classes[clusters == i]).max() for i in range(9))
        assert metrics.clustering_accuracy(classes, clusters) == hits / 200

    def test_order_and_names_change_nothing(self, rng):
        classes, clusters, order = rng.integers(4, size=90), rng.integers(6, size=90), rng.permutation(90)
        for matching in ("majority", "one-to-one"):
            expected = metrics.clustering_accuracy(classes, clusters, matching=matching)
            renamed = rng.permutation(6)[clusters]
            assert metrics.clustering_accuracy(classes[order], renamed[order], matching=matching) == expected

    def test_refuses_an_unknown_matching(self):
        with pytest.raises(ParameterError, match="'greedy'"):
            metrics.clustering_accuracy([0], [0], matching="greedy")


class TestSilhouette:
    def test_by_hand(self):
        # Rows at 0, 1 and 4, 6: scores 4/5, 3/4, 1.5/3.5, 3.5/5.5.
        expected = np.mean([4 / 5, 3 / 4, 1.5 / 3.5, 3.5 / 5.5])
        assert metrics.silhouette([[0.0], [1.0], [4.0], [6.0]], [0, 0, 1, 1]) == pytest.approx(expected)

    def test_equals_brute_force_and_scikit_learn(self, blobs):
        X, labels, _ = blobs
        score = metrics.silhouette(X, labels)
        assert score == pytest.approx(slow_silhouette(X, labels), abs=1e-9)
        assert score == pytest.approx(silhouette_score(X, labels), abs=1e-9)

    def test_centres_take_their_nearest_rows_and_empty_clusters_do_not_count(self, blobs):
        X, _, centers = blobs
        labels = cdist(X, centers).argmin(axis=1)
        expected = metrics.silhouette(X, labels)
        assert metrics.silhouette(X, centers) == expected
        assert metrics.silhouette(X, [[1e6, 1e6, 1e6], *centers]) == expected

    @pytest.mark.parametrize("clusters", [[[0.0]], [[0.0], [1e9]], [3, 3, 3]])
    def test_is_minus_one_for_fewer_than_two_clusters(self, clusters):
        assert metrics.silhouette([[0.0], [1.0], [2.0]], clusters) == -1.0

    def test_is_minus_one_for_one_row(self):
        assert metrics.silhouette([[0.0]], [0]) == -1.0

    def test_a_row_alone_in_its_cluster_scores_zero(self):
        assert metrics.silhouette([[0.0], [1.0], [9.0]], [0, 1, 2]) == 0.0
        # Rows 0 and 2 with 9 alone: 7/9 and 5/7 and 0.
        expected = (7 / 9 + 5 / 7 + 0) / 3
        assert metrics.silhouette([[0.0], [2.0], [9.0]], [0, 0, 1]) == pytest.approx(expected)

    def test_equal_rows_in_two_clusters_score_zero(self):
        assert metrics.silhouette(np.full((7, 3), 0.1), [0, 1, 0, 1, 0, 1, 1]) == 0.0

    def test_order_names_shift_and_scale_change_nothing(self, rng, blobs):
        X, labels, _ = blobs
        order = rng.permutation(len(X))
        expected = metrics.silhouette(X, labels)
        names = np.array(["d", "a", "c", "b"])
        assert metrics.silhouette(X[order], names[labels[order]]) == pytest.approx(expected, abs=1e-9)
        assert metrics.silhouette(1e6 + 0.01 * X, labels) == pytest.approx(expected, abs=1e-5)

    def test_sample_estimates_the_exact_score(self, blobs):
        X, labels, _ = blobs
        exact = metrics.silhouette(X, labels, sample_size=None)
        samples = [metrics.silhouette(X, labels, sample_size=100, random_state=seed) for seed in range(200)]
        # Deviation of a mean over 100 of 400 rows, as if the mean distances were exact.
        deviation = silhouette_samples(X, labels).std() * np.sqrt((1 - 100 / 400) / 100)
        assert np.mean(samples) == pytest.approx(exact, abs=0.01)
        assert 0.5 * deviation < np.std(samples) < 2.0 * deviation

    @pytest.mark.parametrize("sample_size", [1, 2, 10])
    def test_small_samples_keep_a_cluster_of_one_row(self, blobs, sample_size):
        X, labels = np.concatenate([blobs[0], [[50.0, 50.0, 50.0]]]), np.append(blobs[1], 4)
        assert -1.0 <= metrics.silhouette(X, labels, sample_size=sample_size) <= 1.0

    def test_sample_is_reproducible_and_depends_on_random_state(self, blobs):
        X, labels, _ = blobs
        scores = [metrics.silhouette(X, labels, sample_size=50, random_state=seed) for seed in (1, 1, 2)]
        assert scores[0] == scores[1] != scores[2]

    def test_exact_score_does_not_depend_on_random_state(self, blobs):
        X, labels, _ = blobs
        assert metrics.silhouette(X, labels, random_state=1) == metrics.silhouette(X, labels, random_state=2)

    def test_refuses_bad_parameters(self):
        with pytest.raises(ParameterError, match="`sample_size`"):
            metrics.silhouette([[0.0]], [0], sample_size=0)
        with pytest.raises(DataError, match="one label for each row"):
            metrics.silhouette([[0.0], [1.0]], [0, 1, 1])
        with pytest.raises(DataError, match="1 columns"):
            metrics.silhouette([[0.0], [1.0]], [[0.0, 0.0]])


class TestKMeansDistance:
    def test_by_hand(self):
        private = [[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]
        first, second = [[0.0, 0.0]], [[3.0, 4.0], [0.0, 1.0]]
        # To the first 0 + 5 + 1, to the second 1 + 0 + 0.
        assert metrics.kmeans_distance(private, [first, second]) == pytest.approx((6 + 1) / 2)

    def test_one_set_need_not_be_wrapped(self, rng):
        private, reference = rng.normal(size=(4, 3)), rng.normal(size=(6, 3))
        expected = sum(min(np.linalg.norm(c - r) for r in reference) for c in private)
        for several in (reference, [reference], reference[None], reference.tolist(), [reference] * 3):
            assert metrics.kmeans_distance(private, several) == pytest.approx(expected)

    def test_is_zero_for_a_part_of_the_reference(self, rng):
        reference = rng.normal(size=(6, 3))
        assert metrics.kmeans_distance(reference[[2, 2, 0]], [reference]) == 0.0

    def test_order_changes_nothing(self, rng):
        private, references = rng.normal(size=(5, 2)), rng.normal(size=(3, 4, 2))
        expected = metrics.kmeans_distance(private, references)
        shuffled = [rng.permutation(reference) for reference in references[::-1]]
        assert metrics.kmeans_distance(private[::-1], shuffled) == pytest.approx(expected)

    def test_refuses_sets_that_do_not_match(self):
        with pytest.raises(DataError, match="as many columns"):
            metrics.kmeans_distance([[0.0, 0.0]], [[[0.0]]])
        with pytest.raises(DataError, match="`reference_centers`"):
            metrics.kmeans_distance([[0.0, 0.0]], [])


class TestReferenceKMeans:
    def test_finds_the_number_of_clusters_and_the_centres(self, blobs):
        X, labels, _ = blobs
        best = metrics.reference_kmeans(X, [2, 4, 7], n_best=3, n_runs=3)
        means = np.array([X[labels == i].mean(axis=0) for i in range(4)])
        assert [len(centers) for centers in best] == [4, 4, 4]
        assert metrics.kmeans_distance(means, best) < 0.5

    def test_returns_the_best_first(self, blobs):
        X, _, _ = blobs
        best = metrics.reference_kmeans(X, [3, 4, 6], n_best=6, n_runs=2)
        scores = [metrics.silhouette(X, centers) for centers in best]
        assert len(best) == 6
        assert scores == sorted(scores, reverse=True)

    def test_the_rest_of_the_rows_is_used_after_a_start_on_few(self, blobs, monkeypatch):
        monkeypatch.setattr(metrics, "_START_ROWS", 50)
        X, _, _ = blobs
        (centers,) = metrics.reference_kmeans(X, 1, n_best=1, n_runs=1)
        assert centers == pytest.approx(X.mean(axis=0, keepdims=True))

    def test_is_reproducible(self, blobs):
        X, _, _ = blobs
        first, second = (metrics.reference_kmeans(X, 5, n_best=2, n_runs=2, random_state=3) for _ in range(2))
        assert np.array_equal(first, second)

    def test_one_row(self):
        assert metrics.reference_kmeans([[2.0, 3.0]], 1, n_best=1)[0].tolist() == [[2.0, 3.0]]

    @pytest.mark.parametrize(
        ("arguments", "error", "match"),
        [
            ({"n_clusters": 0}, ParameterError, "`n_clusters`"),
            ({"n_clusters": []}, ParameterError, "`n_clusters`"),
            ({"n_clusters": 2, "n_best": 0}, ParameterError, "`n_best`"),
            ({"n_clusters": [2, 3], "n_best": 7, "n_runs": 3}, ParameterError, "the 6 runs"),
            ({"n_clusters": 401}, DataError, "at least `n_clusters` rows"),
        ],
    )
    def test_refuses_bad_parameters(self, blobs, arguments, error, match):
        with pytest.raises(error, match=match):
            metrics.reference_kmeans(blobs[0], **arguments)


TABLE = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0]]
WITH_A_NAME = [["Lovelace", 1.0], [0.0, 1.0], [5.0, 5.0]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.inertia(WITH_A_NAME, TABLE),
        lambda: metrics.inertia(TABLE, [[10**400, 1]]),
        lambda: metrics.inertia([[1e200, 0.0]], TABLE),
        lambda: metrics.inertia([[1j, 0.0]], TABLE),
        lambda: metrics.kmeans_distance(TABLE, 5),
        lambda: metrics.kmeans_distance(TABLE, [WITH_A_NAME]),
        lambda: metrics.silhouette(TABLE, WITH_A_NAME),
        lambda: metrics.silhouette(TABLE, ["Lovelace", 1, None]),
        lambda: metrics.adjusted_rand(["Lovelace", [1]], [0, 1]),
        lambda: metrics.clustering_accuracy(np.array(["Lovelace", None]), [0, 1]),
        lambda: metrics.reference_kmeans(WITH_A_NAME, 2),
    ],
)
def test_what_is_no_table_is_refused_without_a_value(call):
    with pytest.raises(DataError) as error:
        call()
    assert "Lovelace" not in str(error.value)
    assert error.value.__context__ is None or "Lovelace" not in str(error.value.__context__)


@pytest.mark.parametrize(
    "call",
    [
        lambda: metrics.silhouette(TABLE, [0, 1, 1], sample_size="2"),
        lambda: metrics.silhouette(TABLE, [0, 1, 1], sample_size=2, random_state="x"),
        lambda: metrics.clustering_accuracy([0, 1], [0, 1], matching=np.array(["majority", "x"])),
        lambda: metrics.reference_kmeans(TABLE, "2"),
        lambda: metrics.reference_kmeans(TABLE, 1.5),
        lambda: metrics.reference_kmeans(TABLE, 2, n_runs=None),
    ],
)
def test_parameters_of_other_types(call):
    with pytest.raises(ParameterError, match="must be"):
        call()


def test_equal_rows_are_not_counted_in_a_warning():
    centers = metrics.reference_kmeans(np.ones((8, 2)), 3, n_best=1, n_runs=1)
    assert centers[0].shape == (3, 2)
