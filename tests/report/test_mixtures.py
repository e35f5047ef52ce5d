from dataclasses import replace
from fractions import Fraction
from functools import cache
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from sfumato import Release, report
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, Unit
from sfumato.public.models import MixtureModel, MorseModel

HOSTILE = ("--><script>alert(1)</script>\"'&", "</svg></style><img src=x onerror=alert(1)>", "<b>")
STEP = Record("moments", "discrete Laplace", Sensitivity(), Fraction(1))


class Page(HTMLParser):
    """Collects the tags, texts and attributes of what is not hidden, and all identifiers."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.ids, self.n_hidden = [], [], [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.ids += [value for name, value in attrs if name == "id"]
        if tag == "div" and (self.n_hidden or ("hidden", None) in attrs):
            self.n_hidden += 1
        if not self.n_hidden:
            self.tags.append(tag)
            self.attributes += [(name, value) for name, value in attrs]

    def handle_endtag(self, tag):
        self.n_hidden -= tag == "div" and self.n_hidden > 0

    def handle_data(self, data):
        if not self.n_hidden:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def values(self, name):
        return [value for attribute, value in self.attributes if attribute == name]

    @property
    def pictures(self):
        return self.values("role").count("img")

    @property
    def tables(self):
        """Number of tables without bars, and of tables of bars."""
        n_bars = sum(value.split()[0] == "bars" for value in self.values("class"))
        return self.tags.count("table") - n_bars, n_bars


@cache
def mixture(d=2, *, n_components=4):
    """Components in pairs along the first column, the pairs far apart: 100, 200, ... rows."""
    steps = np.arange(n_components)
    means = np.full((n_components, d), 5.0)
    means[:, 0] = 1 + 5 * (steps // 2) + 0.8 * (steps % 2)
    sizes = 100.0 * (steps + 1)
    return MixtureModel(
        sizes / sizes.sum(), means, np.stack([0.04 * np.eye(d)] * n_components), sizes, 0 * sizes
    )


def release(model, *, columns=()):
    d = model.n_features
    method = "MorseClustering" if isinstance(model, MorseModel) else "DPMoG"
    privacy = PrivacyStatement(Budget(1), Unit(), (STEP,), False)
    return Release(method, {}, Domain((0.0,) * d, (10.0,) * d), columns, model, privacy)


def page(model, **kwargs):
    return Page(report.render(release(model, **kwargs)))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_page_for_components(d):
    shown = page(mixture(d))
    assert shown.pictures == 1
    assert shown.tables == (7, 2)
    assert "3 400 40.0% 6.80 ± 0.20" in shown.text
    assert "total 1,000 100.0%" in shown.text
    assert "A component is a cloud of records around their mean" in shown.text
    assert "Prediction gives the component of a new record" in shown.text
    assert "must not be published" in shown.text
    assert "massif" not in shown.text


@pytest.mark.parametrize("d", [1, 2, 4])
def test_a_page_for_joined_components(d):
    model = MorseModel(mixture(d), 2)
    shown = page(model)
    assert shown.pictures == 2
    assert shown.tables == (8, 2)
    assert "0 2 700 70.0% 6.46 ± 0.44" in shown.text  # of 300 rows at 6 and 400 at 6.8
    assert "total 4 1,000 100.0%" in shown.text
    assert "peaks on one high ridge" in shown.text
    assert "0 and 1 below 0.1%" in shown.text
    least = np.exp(-model.tree.persistences[:2].max())
    assert f"never falls below {least:.0%} of the lower peak" in shown.text
    assert len(shown.ids) == len(set(shown.ids))


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (mixture(), "a map of two columns (east, north) with 4 components. The largest is number 3"),
        (
            MorseModel(mixture(), 2),
            "2 clusters of 4 components. The largest is number 0, with about 700",
        ),
        (MorseModel(mixture(), 2), "the tree in which 4 peaks of the density join, cut into 2 clusters"),
    ],
)
def test_pictures_are_described(model, text):
    assert any(text in label for label in page(model, columns=("east", "north")).values("aria-label"))


def test_one_peak_reads_well():
    shown = page(MorseModel(mixture(n_components=1), 1))
    assert "The density has a single peak" in shown.text
    assert shown.pictures == 1
    assert shown.tables == (7, 2)
    assert shown.tags.count("tfoot") == 1  # of the steps
    assert "input" not in shown.tags
    assert "of the lower peak" not in shown.text


def test_one_cluster_of_several_peaks():
    shown = page(MorseModel(mixture(), 1))
    assert "Within the clusters" in shown.text
    assert "density falls to" not in shown.text  # the head of the table


def test_as_many_clusters_as_peaks():
    shown = page(MorseModel(mixture(), 4))
    assert "Within the clusters" not in shown.text
    assert shown.tables == (8, 2)


def test_saddles_that_are_not_confirmed_are_bounds():
    model = MorseModel(replace(mixture()), 4)
    tree = model.tree
    vars(model.base)["tree"] = replace(tree, saddles=tree.saddles._replace(exact=np.zeros(3, dtype=bool)))
    shown = page(model)
    assert "≥ where a better path may exist" in shown.text
    assert "2 and 3 ≥ 37" in shown.text
    assert "1 and 2 ≥ 0.0%" in shown.text


def test_sizes_that_noise_made_zero():
    shown = page(MorseModel(replace(mixture(), sizes=np.zeros(4)), 2))
    assert "0 2 0 —" in shown.text


def test_long_lists_are_cut():
    rng = np.random.default_rng(0)
    model = replace(mixture(n_components=103), means=rng.uniform(0, 10, (103, 2)))
    assert "3 more 30,600 5.7%" in page(model).text


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_hostile_names_stay_text(d):
    shown = page(mixture(d) if d < 2 else MorseModel(mixture(d, n_components=2), 1), columns=HOSTILE[:d])
    assert not {"img", "b"} & set(shown.tags)
    assert shown.tags.count("script") == 1
    assert HOSTILE[0] in shown.text


def test_report_from_a_file(tmp_path):
    for model in (mixture(n_components=2), MorseModel(mixture(n_components=2), 2)):
        shown = release(model)
        loaded = Release.load(shown.save(tmp_path / "release.json"))
        assert report.render(loaded) == report.render(shown)
