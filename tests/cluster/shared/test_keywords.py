"""Keywords of other libraries get advice, and constructors stay what they were."""

import copy
import inspect
import pickle

import pytest
from sklearn.base import clone
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans, MiniBatchKMeans
from sklearn.mixture import GaussianMixture
from tests.conftest import all_estimators

from sfumato import DPDBSCAN, DPM, DensityTree, DPMoG, GridKMeans, LloydKMeans, SourceTargetClustering
from sfumato.cluster.shared.keywords import _ADVICE, with_advice

CLASSES = [*all_estimators(), SourceTargetClustering]
every_class = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
PEERS = [KMeans, MiniBatchKMeans, GaussianMixture, DBSCAN, HDBSCAN]
OF_INDEXES = {
    "cluster_selection_method",
    "allow_single_cluster",
    "alpha",
    "store_centers",
    "max_cluster_size",
}
OF_INDEXES |= {"reassignment_ratio", "compute_labels", "verbose_interval"}


@every_class
@pytest.mark.parametrize(
    "keyword", ["n_init", "max_iter", "init", "tol", "algorithm", "eps", "min_cluster_size"]
)
def test_every_estimator_says_what_to_do_about_a_keyword_of_scikit_learn(cls, keyword):
    if keyword in cls().get_params():
        return
    with pytest.raises(TypeError, match=rf"^{cls.__name__} has no parameter `{keyword}`(: |\. Use `)"):
        cls(**{keyword: 1})


@pytest.mark.parametrize(
    ("cls", "keyword", "says"),
    [
        (DPDBSCAN, "eps", "Use `radius`"),
        (DPDBSCAN, "min_cluster_size", "Use `min_samples`"),
        (DensityTree, "min_cluster_size", "Use `prominence`"),
        (DensityTree, "bandwidth", "Use `cell`"),
        (DensityTree, "n_clusters", "finds the number itself"),
        (LloydKMeans, "max_iter", "Use `n_iter`"),
        (GridKMeans, "max_iter", "every round spends budget"),
        (GridKMeans, "eps", "`epsilon` is the privacy budget"),
        (GridKMeans, "k", "Use `n_clusters`"),
        (DPMoG, "k", "Use `n_components`"),
        (DPMoG, "n_clusters", "Use `n_components`"),
        (DPMoG, "covariance_type", "Use `covariance`"),
        (DPM, "n_init", "would spend budget"),
        (DPM, "accountant", "Use `ledger`"),
        (DPM, "n_cluster", "Did you mean `n_clusters`?"),
        (DPM, "zzz", "It has n_clusters, "),
    ],
)
def test_the_advice_suits_the_estimator(cls, keyword, says):
    with pytest.raises(TypeError) as error:
        cls(**{keyword: 1})
    assert says in str(error.value)


@every_class
def test_advice_names_only_parameters_that_exist(cls):
    known = inspect.signature(cls).parameters
    for keyword in _ADVICE.keys() - known.keys():
        with pytest.raises(TypeError) as error:
            cls(**{keyword: 1})
        _, use, name = str(error.value).partition(" Use `")
        assert not use or name.partition("`")[0] in known, keyword


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.__name__)
def test_there_is_advice_for_the_keywords_of_scikit_learn(peer):
    shared = {"n_clusters", "n_components", "random_state"}
    assert set(inspect.signature(peer).parameters) <= _ADVICE.keys() | shared | OF_INDEXES


@every_class
def test_constructors_stay_what_they_were(cls):
    signature = inspect.signature(cls)
    assert set(cls().get_params(deep=False)) == set(signature.parameters)
    assert not any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in signature.parameters.values())
    model = cls(epsilon=0.25, bounds=(0, 1))
    for copied in (clone(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert copied.epsilon == 0.25
        assert copied.get_params(deep=False) == model.get_params(deep=False)


def test_positional_parameters_still_work():
    assert LloydKMeans(5).n_clusters == 5
    with pytest.raises(TypeError, match="positional"):
        LloydKMeans(5, 3)
    with pytest.raises(TypeError, match="multiple values"):
        LloydKMeans(5, n_clusters=3)


def test_a_constructor_that_takes_any_keyword_is_left_alone():
    class Open:
        def __init__(self, **keywords):
            self.keywords = keywords

    before = Open.__init__
    with_advice(Open)
    assert Open.__init__ is before
    assert Open(eps=1).keywords == {"eps": 1}


def test_a_subclass_has_advice_of_its_own_parameters():
    class Wide(GridKMeans):
        width: float = 1.0

    assert Wide(width=2.0).width == 2.0
    with pytest.raises(TypeError, match=r"Wide has no parameter `widht`. Did you mean `width`\?"):
        Wide(widht=2.0)
