"""A release says what in it cannot be relied on, and is silent where nothing is wrong."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from sfumato import DPM, DensityTree, DPMoG, GridKMeans, LloydKMeans, MorseClustering, datasets
from sfumato.datasets import separated_gaussians
from sfumato.errors import NoiseWarning
from sfumato.public.doubts import HIDDEN, doubts

# As somebody would write them who knows what the columns mean but has not seen the rows.
ADULT = {
    "age": (15, 90),
    "fnlwgt": (0, 1_500_000),
    "educational_num": (1, 16),
    "capital_gain": (0, 100_000),
    "capital_loss": (0, 5_000),
    "hours_per_week": (0, 100),
}
WARDS = ["icu", "er", "birth"]


def table(seed=0, n=8_000):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "age": rng.normal(np.array([30, 70])[group], 5),
            "weight": rng.normal(np.array([60, 90])[group], 6),
            "ward": np.array(WARDS)[np.where(rng.random(n) < 0.8, group, 2)],
        }
    )


BOUNDS = {"age": (0, 100), "weight": (0, 200), "ward": WARDS}


def fitted(seed=0, method=LloydKMeans, rows=None, **parameters):
    options = {"n_clusters": 2, "bounds": BOUNDS, "rho": 0.5, "random_state": seed, **parameters}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoiseWarning)
        return method(**options).fit(table(seed) if rows is None else rows)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("method", [LloydKMeans, DPM, GridKMeans])
def test_a_good_release_has_none(method, seed):
    assert not doubts(fitted(seed, method).release_)
    X, _ = separated_gaussians(20_000, 5, 4, random_state=seed)
    assert not doubts(fitted(seed, method, X, n_clusters=5, bounds=(-1, 1)).release_)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rho", [1e-7, 1e-6])
def test_noise_that_hides_everything(rho, seed):
    assert doubts(fitted(seed, rho=rho).release_)
    assert doubts(fitted(seed, rho=rho, profiles=0).release_)


def with_model(release, **parts):
    return replace(release, model=replace(release.model, **parts))


def test_the_limit_is_half_of_an_interval():
    release = fitted(profiles=0).release_
    for times, is_told in ((0.98, False), (1.02, True)):
        stds = np.zeros_like(release.model.center_stds)
        stds[1, 1] = times * HIDDEN * 200 / 1.96
        found = doubts(with_model(release, center_stds=stds))
        expected = "The noise in 'weight' is more than a quarter of the width of the bounds, in cluster 1"
        assert found == ((expected,) if is_told else ())


def test_columns_are_told_together_if_they_are_hidden_in_the_same_clusters():
    release = fitted(profiles=0).release_
    stds = np.zeros_like(release.model.center_stds)
    stds[:, 0], stds[1, 1] = 50, 80
    ages, weights = doubts(with_model(release, center_stds=stds))
    assert ages.startswith("The noise in 'age' is")
    assert ages.endswith("in both clusters")
    assert weights.startswith("The noise in 'weight' is")
    stds[:, 1] = 80
    (both,) = doubts(with_model(release, center_stds=stds))
    assert both.startswith("The noise in 'age' and 'weight' is")


def test_a_category_in_which_no_level_stands_out():
    release = fitted(profiles=0).release_
    centers, stds = release.model.cluster_centers.copy(), np.zeros_like(release.model.center_stds)
    centers[0, 2:], stds[0, 2:] = 0.25, 0.12
    assert not doubts(with_model(release, cluster_centers=centers, center_stds=stds))
    stds[0, 2:] = 0.13  # every share of a quarter may be zero
    (found,) = doubts(with_model(release, cluster_centers=centers, center_stds=stds))
    assert found == "The noise hides which levels of 'ward' are in the centre of cluster 0"


def test_clusters_that_are_missing():
    release = fitted(profiles=0).release_
    asked = replace(release, parameters={**release.parameters, "n_clusters": 8})
    assert doubts(asked) == (
        "2 clusters came back and 8 were asked for: the noise hides the others, or there are no more",
    )
    one = with_model(asked, cluster_centers=release.model.cluster_centers[:1])
    one = with_model(one, cluster_sizes=np.array([8000.0]), center_stds=None, size_stds=None)
    assert doubts(one)[0].startswith("1 cluster came back and 8")
    found = fitted(method=DPM, n_clusters=None, rho=1e-4)
    assert not any("asked for" in sentence for sentence in doubts(found.release_))


def test_a_span_that_is_everywhere():
    rng, tree = np.random.default_rng(0), DensityTree(bounds=(0, 1), epsilon=2.0, random_state=0)
    with pytest.warns(NoiseWarning, match="The only span covers"):
        even = tree.fit(rng.uniform(size=(5_000, 2))).release_
    assert [doubt.split(" covers ")[0] for doubt in doubts(even)] == ["The only span"]
    gathered = tree.fit(rng.normal(0.5, 0.05, size=(5_000, 2)))
    assert gathered.n_clusters_ == 1
    assert not doubts(gathered.release_)


def test_no_span_at_all():
    tree = DensityTree(bounds=(0, 1), epsilon=1.0, random_state=0)
    with pytest.warns(NoiseWarning, match="No span was found"):
        tree.fit(np.full((0, 2), 0.5))


def test_whole_numbers_in_narrow_cells():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(45, 12, 40_000), "metres": rng.normal(300, 80, 40_000)})
    bounds = {"age": (0, 100, "years"), "metres": (0, 700)}
    tree = DensityTree(bounds=bounds, epsilon=2.0, random_state=0)
    assert not doubts(tree.fit(X).release_)
    X["age"] = X["age"].round()
    with pytest.warns(NoiseWarning, match="whole numbers of 'age', and cells are narrower"):
        striped = tree.fit(X)
    assert striped.n_clusters_ > 1
    X["age"] += rng.uniform(-0.5, 0.5, len(X))  # as the warning advises
    spread = tree.fit(X)
    assert spread.n_clusters_ == 1
    assert not doubts(spread.release_)


def test_empty_clusters_and_only_those():
    release = fitted(profiles=0, n_clusters=2).release_
    sizes, stds = np.array([7900.0, 10.0]), np.array([40.0, 40.0])
    (found,) = doubts(with_model(release, cluster_sizes=sizes, size_stds=stds))
    assert found == "Cluster 1 may be empty: the size cannot be told from zero"
    # A large cluster with moving borders is uncertain, but not empty.
    sizes, stds = np.array([5000.0, 3000.0]), np.array([40.0, 2000.0])
    assert not doubts(with_model(release, cluster_sizes=sizes, size_stds=stds))
    sizes, stds = np.array([5000.0, 3000.0]), np.array([40.0, 3100.0])
    (found,) = doubts(with_model(release, cluster_sizes=sizes, size_stds=stds))
    assert found == "The noise hides cluster 1: the size is uncertain by more than 100 %"
    sizes, stds = np.array([5000.0, 3000.0]), np.array([40.0, 2000.0])
    assert not doubts(with_model(release, cluster_sizes=sizes, size_stds=stds))
    sizes, stds = np.array([50.0, 30.0]), np.array([4000.0, 2000.0])
    assert "Both clusters may be empty" in doubts(with_model(release, cluster_sizes=sizes, size_stds=stds))[0]


def test_the_centre_of_an_empty_cluster_is_not_told_again():
    release = fitted(profiles=0).release_
    stds = np.zeros_like(release.model.center_stds)
    stds[1] = 500
    sizes = {"cluster_sizes": np.array([7900.0, 0.0]), "size_stds": np.array([40.0, 40.0])}
    (found,) = doubts(with_model(release, center_stds=stds, **sizes))
    assert "may be empty" in found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("bounds", "is_narrow"),
    [
        ((0, 100), False),
        ((20, 90), False),
        ((40, 90), True),
        ((5, 32), True),
        ((0, 5), True),
        ((200, 300), True),
    ],
)
def test_bounds_that_cut_off_most_rows(seed, bounds, is_narrow):
    rows = table(seed).assign(age=np.random.default_rng(seed).normal(35, 8, 8_000))
    found = doubts(fitted(seed, rows=rows, bounds={"age": bounds, "weight": (0, 200)}).release_)
    assert any("Most rows are at a bound of 'age'" in one for one in found) == is_narrow
    assert not any("weight" in one for one in found)


@pytest.mark.parametrize("seed", range(3))
def test_values_that_are_merely_frequent(seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "visits": rng.poisson(0.3, 8_000),  # most are 0, where counts start
            "days": np.where(rng.random(8_000) < 0.96, 999, rng.integers(0, 30, 8_000)),  # a code at the end
            "mark": rng.choice([1, 2, 3, 4, 5], 8_000, p=[0.02, 0.03, 0.05, 0.3, 0.6]),
            "married": rng.random(8_000) < 0.9,
        }
    )
    bounds = {"visits": (0, 50), "days": (0, 999), "mark": (1, 5), "married": bool}
    assert not any("bound of" in one for one in doubts(fitted(seed, rows=rows, bounds=bounds).release_))


def test_without_profiles_nearly_all_centres_must_be_at_a_bound():
    rows = table()
    options = {"profiles": 0, "rows": rows}
    narrow = fitted(bounds={"age": (-9, 5), "weight": (0, 200)}, **options)
    assert doubts(narrow.release_) == ("Most rows are at a bound of 'age': the bounds may be too narrow",)
    assert not doubts(fitted(bounds={"age": (50, 100), "weight": (0, 200)}, **options).release_)


def test_columns_measured_as_they_are():
    far_apart = {"age": (0, 100), "income": (0, 100_000)}
    rows = table().assign(income=lambda t: 500 * t.weight)

    def told(bounds, **options):
        found = doubts(fitted(rows=rows, bounds=bounds, profiles=0, **options).release_)
        return [one for one in found if "as they are" in one]

    (one,) = told(far_apart, scale=None)
    assert "of 'income' are over 10 times as wide as those of 'age', which hardly count" in one
    assert not told(far_apart)
    assert not told({"age": (0, 100), "weight": (0, 900)}, scale=None)
    assert not told({"age": (0, 100, "m"), "weight": (0, 9000, "m")}, scale=None)
    assert not told(far_apart, scale=None, weights={"age": 200})
    assert told(far_apart, scale=None, weights={"age": 2})
    assert told({"income": (0, 100_000), "ward": WARDS}, scale=None)


def test_models_without_centres_or_noise():
    X, _ = separated_gaussians(20_000, 3, 2, random_state=0)
    assert not doubts(DensityTree(bounds=(-1, 1), rho=0.5, random_state=0).fit(X).release_)
    assert not doubts(DPMoG(3, bounds=(-1, 1), rho=0.5, random_state=0).fit(X).release_)


@pytest.mark.parametrize(("few", "asked", "is_told"), [(300, 2, True), (3000, 2, False), (300, None, False)])
def test_a_cut_that_takes_off_the_rim(few, asked, is_told):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(-0.4, 0.1, (10_000, 2)), rng.normal(0.6, 0.05, (few, 2))])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoiseWarning)
        model = MorseClustering(DPMoG(5), asked, bounds=(-1, 1), rho=0.5, random_state=0).fit(X)
    told = [
        sentence for sentence in doubts(model.release_) if "less than a tenth of the mean size" in sentence
    ]
    assert bool(told) == is_told
    assert [str(one.message) for one in caught if "less than a tenth" in str(one.message)] == told


def test_a_fit_warns_once_where_it_is_called():
    with pytest.warns(NoiseWarning) as caught:
        model = LloydKMeans(2, bounds=BOUNDS, rho=1e-7, random_state=0).fit(table())
    assert [str(one.message) for one in caught] == list(doubts(model.release_))
    assert {one.filename for one in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LloydKMeans(2, bounds=BOUNDS, rho=0.5, random_state=0).fit(table())


def test_doubts_survive_the_file(tmp_path):
    from sfumato import Release

    release = fitted(rho=1e-7).release_
    assert doubts(Release.load(release.save(tmp_path / "release.json"))) == doubts(release)


@pytest.mark.skipif(datasets.data_home() is None, reason="needs SFUMATO_DATA")
@pytest.mark.parametrize("seed", range(3))
def test_adult(seed):
    """Six columns of numbers: columns as they are hide five of them, and units of the bounds hide none."""
    rows = pd.read_parquet(datasets.data_home() / "adult_full.parquet", columns=list(ADULT))
    options = {"rows": rows, "bounds": ADULT, "n_clusters": 5, "rho": None, "epsilon": 1, "delta": 1e-6}
    found = doubts(fitted(seed, DPM, scale=None, **options).release_)
    assert any("measured as they are" in one for one in found)
    hidden = [one for one in found if one.startswith("The noise in") and "in all 5 clusters" in one]
    for name in ("age", "educational_num", "hours_per_week"):
        assert any(f"'{name}'" in one for one in hidden)
    assert not doubts(fitted(seed, DPM, **options).release_)
