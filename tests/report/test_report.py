import base64
import hashlib
import json
import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib.figure import Figure

from sfumato import Release, report
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.exact import rounded_up
from sfumato.budget.records import Sensitivity
from sfumato.domain import Domain, Grid, Unit
from sfumato.plot.columns import coordinate
from sfumato.public.density.histogram import NoisyHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.grid.synopsis import GridSynopsis
from sfumato.public.intervals import Sizes
from sfumato.public.models import PUBLISHABLE, CentreModel, SpannedModel
from sfumato.report.centres import cell_sums
from sfumato.report.protection import Protection, in_words

HOSTILE = ("--><script>alert(1)</script>\"'&", "</svg></style><img src=x onerror=alert(1)>")
VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Collects tags, texts and attributes, and insists that tags are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.texts = [], Counter(), [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags[tag] += 1
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]

    @property
    def pictures(self):
        return self.values("role").count("img")

    @property
    def tables(self):
        """Number of tables without bars, and of tables of bars."""
        n_bars = sum(value.split()[0] == "bars" for value in self.values("class"))
        return self.tags["table"] - n_bars, n_bars


def statement(budget=None, unit=None, *, seeded=False):
    budget = budget or Budget(1)
    mechanism = "discrete Laplace" if budget.kind == "pure" else "discrete Gaussian"
    steps = (
        Record("rows", mechanism, Sensitivity(), Fraction(20)),
        Record("grid", mechanism, Sensitivity(), Fraction(20, 19)),
    )
    return PrivacyStatement(budget, unit or Unit(), steps, seeded)


def release(d=2, *, columns=(), has_grid=True, privacy=None):
    domain = Domain((0.0,) * d, (10.0,) * d)
    grid = Grid.over(domain, 4)
    counts = np.arange(grid.n_cells, dtype=np.int64) * 100
    noise = {"noise_std": 2.0, "laplace": True, "rows_std": 5.0}
    synopsis = GridSynopsis(grid, counts, noisy_rows=float(counts.sum()), **noise) if has_grid else None
    model = CentreModel(np.full((1, d), 2.0) * [[1], [4]], np.array([2500.0, 9500.0]), synopsis)
    parameters = {"n_clusters": 2, "rule": "rugnik", "n_public": None}
    return Release("GridKMeans", parameters, domain, columns, model, privacy or statement())


@dataclass(frozen=True, eq=False)
class SpanModel(SpannedModel):
    def attributes(self):
        return {"spans": self.spans}


@dataclass(frozen=True, eq=False)
class GuaranteedModel(SpanModel):
    @property
    def guarantee(self):
        return Fraction(3, 7)  # any object that prints


@pytest.fixture
def publishable(monkeypatch):
    for cls in (SpanModel, GuaranteedModel):
        monkeypatch.setitem(PUBLISHABLE, cls.__name__, cls)


def span_release(n_spans, d=2, *, columns=(), kind=SpanModel):
    """Spans of one cell each along the last column, with 100, 200, ... rows."""
    domain = Domain((0.0,) * d, (10.0,) * d)
    grid, spans = Grid.over(domain, 2 * n_spans + 1), np.arange(n_spans)
    counts = 100.0 * spans[:, None] + [100.0, 60.0, 140.0]
    histogram = NoisyHistogram(grid, np.zeros(grid.n_cells, dtype=np.int64), "discrete Laplace", 2.0)
    model = kind(histogram, Regions(grid, 2 * spans, spans, counts, 0.9))
    return Release("DPDBSCAN", {"radius": 0.5}, domain, columns, model, statement())


def page(*args, **kwargs):
    return Page(report.render(release(*args, **kwargs)))


@pytest.mark.parametrize("has_grid", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_page_for_any_model(d, has_grid):
    shown = page(d, has_grid=has_grid)
    assert shown.pictures == 1
    assert shown.tags["h1"] == 1
    assert shown.tags["h2"] == 5
    assert shown.tables == (7, 2)  # sizes and budget have bars
    assert shown.tags["caption"] == 9
    assert ("noisy count" in shown.text) == has_grid
    assert "2,500" in shown.text


def test_without_matplotlib_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'sfumato\[report\]'"):
        report.write(None, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("d", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_nothing_comes_from_the_network(d):
    text = report.render(release(d))
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", text))
    assert addresses <= {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    shown = Page(text)
    links = shown.values("src") + shown.values("href") + shown.values("xlink:href")
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not {"link", "iframe", "object", "img"} & set(shown.tags)
    assert "@import" not in text
    assert "default-src 'none'" in text


def test_the_page_allows_its_own_script_only():
    text = report.render(release())
    assert Page(text).tags["script"] == 1
    script = text[text.index("<script>") + len("<script>") : text.index("</script>")]
    allowed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{allowed}'" in text
    assert "unsafe-inline'; script" in text  # for styles
    assert "script-src 'unsafe" not in text


@pytest.mark.usefixtures("drawn")
def test_structure_for_readers_and_machines():
    text = report.render(release(columns=("east", "north")))
    shown = Page(text)
    assert ("html", "lang", "en") in shown.attributes
    scopes = [value for tag, name, value in shown.attributes if (tag, name) == ("th", "scope")]
    assert set(scopes) == {"col", "row"}
    assert len(scopes) == shown.tags["th"]
    labels = [value for tag, name, value in shown.attributes if (tag, name) == ("svg", "aria-label")]
    assert "map of two columns (east, north) with 2 cluster centres" in labels[0]
    assert "Estimated number of records in each cluster, the largest first" in shown.text
    assert "cluster 1 9,500 cluster 0 2,500" in shown.text
    assert "rows 5.0% grid 95.0%" in shown.text
    ids = shown.values("id")
    assert len(ids) == len(set(ids))
    assert set(shown.values("aria-labelledby")) <= set(ids)
    targets = {value[1:] for value in shown.values("xlink:href") if value.startswith("#")}
    assert targets <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(ids)


@pytest.mark.usefixtures("drawn")
def test_pictures_take_the_ink_of_the_page():
    text = report.render(release())
    assert "currentColor" in text
    assert "#010203" not in text
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_seeded_banner():
    assert "seeded: do not publish" in page(privacy=statement(seeded=True)).text
    assert "seeded" not in page().text


@pytest.mark.usefixtures("drawn")
@pytest.mark.parametrize("d", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_hostile_names_stay_text(d):
    unit = Unit("<b>person</b>")
    shown = release(d, columns=HOSTILE[:d], privacy=statement(unit=unit))
    shown = replace(shown, method="<i>m</i>", created="<u>now</u>", library="<s>1</s>")
    shown = replace(shown, parameters={"<a href=x>": "<script>"})
    read = Page(report.render(shown))
    assert not {"img", "b", "i", "u", "s"} & set(read.tags)
    assert (read.tags["script"], read.tags["a"]) == (1, 5)
    assert HOSTILE[0] in read.text
    assert not any(name.startswith("on") for _, name, _ in read.attributes)


@pytest.mark.usefixtures("drawn")
def test_names_beyond_the_font_of_the_picture():
    assert "年齢 🎂" in page(columns=("年齢 🎂", "$\\frac$")).text


def test_pure_guarantee_in_words():
    text = page().text
    assert "Here, epsilon is 1." in text
    assert "by a factor of at most 2.72" in text
    assert "50% 26.8% 73.2%" in text
    assert "without exception: delta is 0" in text
    assert "with two records, the factor is 7.39" in text
    assert "strong guarantee" in text


def test_approximate_guarantee_in_words():
    text = page(privacy=statement(Budget(8, 1e-6))).text
    assert "Delta is 1e-06, or 1 in 1,000,000." in text
    assert "without exception" not in text
    assert "reasonable guarantee" in text


@pytest.mark.parametrize(
    ("epsilon", "delta", "is_strong"),
    [(1, 0, True), (1, 1e-6, True), (1, 0.01, False), (2, 0, False), (30, 0, False)],
)
def test_only_a_strong_guarantee_makes_almost_no_difference(epsilon, delta, is_strong):
    text = Page(in_words(Protection(epsilon, delta, None, Unit()))).text
    assert ("almost as likely if any one record had not been in the table" in text) == is_strong
    assert ("protected almost as if it had never been there" in text) == is_strong
    assert ("limits how much more or less likely" in text) == (not is_strong)


def test_a_large_delta_is_not_praised():
    text = page(privacy=statement(Budget(1, 0.5))).text
    assert "Delta is 0.5, or 1 in 2." in text
    assert "the guarantee is weak, whatever epsilon is" in text
    assert "here it is large" in text
    assert "rare cases" not in text
    assert "rare cases" in page(privacy=statement(Budget(1, 1e-3))).text


def test_rho_guarantee_in_words():
    privacy = statement(Budget(rho=0.5))
    text = page(privacy=privacy).text
    assert f"epsilon is {rounded_up(privacy.epsilon_at(1e-6), 3)}" in text
    assert "rho = 0.45" in text
    assert "rho=0.5" in text


@pytest.mark.parametrize("epsilon", ["1/3", 0.0123456, 1.2, 2.0001, 7, 9.1, 13, 30])
def test_no_number_of_a_guarantee_reads_better_than_it_is(epsilon):
    budget = Budget(epsilon, "1/300007")
    protection = Protection(float(budget.epsilon), float(budget.delta), None, Unit())
    summary, text = protection.summary(), Page(in_words(protection)).text
    shown_epsilon, shown_delta = re.findall(r"= ([\d.e+-]+)", summary["Guarantee"])
    assert Fraction(shown_epsilon) >= protection.epsilon
    assert Fraction(shown_delta) >= budget.delta
    factor = Fraction(summary["Odds change by at most"].removeprefix("a factor of ").replace(",", ""))
    assert Decimal(factor.numerator) / Decimal(factor.denominator) >= Decimal(protection.epsilon).exp()
    assert int(re.search(r"1 in ([\d,]+)\.", text)[1].replace(",", "")) <= 1 / budget.delta
    for prior in (0.1, 0.5):
        low, high = protection.beliefs(prior)
        shown = re.search(rf"{prior:.0%} ([\d.]+)% ([\d.]+)%", text)
        assert shown is None or (float(shown[1]) <= 100 * low and float(shown[2]) >= 100 * high)


def test_the_table_of_attackers_follows_the_statement():
    privacy = statement()
    text = page(privacy=privacy).text
    assert "1% 1% 2.72%" in text
    for rate, hits in Protection.of(privacy).hits.items():
        shown = re.search(rf" {100 * rate:g}% {100 * rate:g}% ([\d.]+)%", text)
        assert hits == privacy.attack_power(rate)
        assert 100 * hits <= float(shown[1]) <= 101 * hits


def test_people_as_units():
    text = page(privacy=statement(unit=Unit("person_id", 3))).text
    assert "at most 3 records of each person" in text
    assert "a particular person is in the table" in text


def test_enormous_epsilon_is_called_weak():
    step = Record("grid", "discrete Laplace", Sensitivity(), Fraction(1, 2000))
    text = page(privacy=PrivacyStatement(Budget(2000), Unit(), (step,), False)).text
    assert "weak guarantee" in text
    assert "above 99.9%" in text
    assert "100%" not in text


def test_beliefs_are_those_of_bayes():
    protection = Protection(math.log(3), 0.0, None, Unit())
    assert protection.beliefs(0.5) == pytest.approx((0.25, 0.75))


def test_steps_are_listed_with_their_repeats():
    step = Record("splits", "permute-and-flip", Sensitivity(spread=2), Fraction(14))
    text = page(privacy=PrivacyStatement(Budget(1), Unit(), (step,) * 7, False)).text
    assert "splits 7 permute-and-flip 2 (spread) 14 — epsilon=1" in text


def test_the_total_of_several_runs_is_the_sum_of_their_promises():
    one = statement(Budget(4, 1e-6))
    assert "smallest of four proven bounds" in page(privacy=one).text
    assert "The steps belong to 2 runs" in page(privacy=one.after(one)).text


def test_parameters_and_budget_are_listed():
    text = page(privacy=statement(Budget(rho=0.5))).text
    assert "budget rho=0.5" in text
    assert "n_public not set" in text


def test_cell_sums_are_unbiased_with_known_noise():
    model, rng, scores = release().model, np.random.default_rng(0), []
    true_sums, _ = cell_sums(model, model.synopsis)
    for _ in range(150):
        noise = rng.normal(0.0, model.synopsis.noise_std, model.synopsis.grid.n_cells)
        noisy = replace(model.synopsis, noisy_counts=model.synopsis.noisy_counts + noise)
        sums, stds = cell_sums(model, noisy)
        scores.append((sums - true_sums) / stds)
    assert abs(np.mean(scores)) < 0.25
    assert 0.8 < np.std(scores) < 1.2


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (1.23456, 0, 40, "1.23"),
        (1.23456, -1, 1, "1.235"),
        (51234.6, 0, 1e5, "51,235"),
        (3e-20, 0, 1e-19, "3e-20"),
    ],
)
def test_coordinates_have_digits_that_fit_their_range(value, low, high, text):
    assert coordinate(value, low, high) == text


@pytest.mark.usefixtures("drawn")
def test_file_is_written_whole_and_matches_the_release(tmp_path):
    shown = release()
    path = report.write(shown, tmp_path / "report.html")
    assert path == tmp_path / "report.html"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    text = path.read_text(encoding="utf-8")
    assert text == report.render(shown)
    shown.save(tmp_path / "release.json")
    assert json.loads((tmp_path / "release.json").read_text())["sha256"] in text
    assert report.render(Release.load(tmp_path / "release.json")) == text


def test_failed_write_leaves_the_old_report(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise OSError

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError):  # noqa: PT011
        report.write(release(), path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.usefixtures("publishable")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_page_for_spans(d):
    text = report.render(span_release(3, d, columns=("east", "north", "height")[:d]))
    shown = Page(text)
    assert shown.pictures == (1 if d == 2 else 0)
    assert shown.tables == (7, 2)
    whole = "0.00 to 1.43 "  # one of seven cells
    assert f"2 300 260 to 340 50.0% {whole * (d - 1)}5.71 to 7.14" in shown.text
    assert "total 600 100.0%" in shown.text
    assert "90% of these intervals would contain the true number of records in the area drawn" in shown.text
    assert "may still hold records" in shown.text
    assert "Records not released" in shown.text
    ids = shown.values("id")
    assert len(ids) == len(set(ids))


@pytest.mark.usefixtures("publishable")
def test_span_tables_begin_with_the_largest():
    text = Page(report.render(span_release(3))).text
    assert text.index("2 300 260 to 340") < text.index("1 200 160 to 240") < text.index("0 100 60 to 140")
    assert "total 100" not in Page(report.render(span_release(1))).text


@pytest.mark.usefixtures("publishable")
def test_map_of_spans_is_described():
    labels = Page(report.render(span_release(3, columns=("east", "north")))).values("aria-label")
    expected = (
        "a map of two columns (east, north) with 3 spans. The largest is number 2, with about 300 records"
    )
    assert any(expected in label for label in labels)


@pytest.mark.usefixtures("publishable")
def test_small_spans_of_a_long_list_are_added_up():
    text = Page(report.render(span_release(103))).text
    assert "3 smaller 600 0.1%" in text
    assert "total 535,600 100.0%" in text


@pytest.mark.usefixtures("publishable")
@pytest.mark.parametrize("d", [2, 3])
def test_no_spans_reads_well(d):
    shown = Page(report.render(span_release(0, d, kind=GuaranteedModel)))
    assert "No area is dense enough to be told apart from noise." in shown.text
    assert "3/7" in shown.text
    assert shown.pictures == 0
    assert shown.tables == (6, 1)


@pytest.mark.usefixtures("publishable")
def test_spans_are_guaranteed_where_the_model_says_so():
    assert "3/7" in Page(report.render(span_release(2, kind=GuaranteedModel))).text
    assert "3/7" not in Page(report.render(span_release(2))).text


@pytest.mark.usefixtures("publishable")
def test_hostile_names_beside_spans():
    shown = Page(report.render(span_release(2, columns=HOSTILE)))
    assert "img" not in shown.tags
    assert shown.tags["script"] == 1


@pytest.mark.usefixtures("publishable", "drawn")
def test_report_on_spans_from_a_file(tmp_path):
    shown = span_release(4)
    loaded = Release.load(shown.save(tmp_path / "release.json"))
    assert report.render(loaded) == report.render(shown)


def test_models_of_others_are_named_and_their_sizes_shown(monkeypatch):
    @dataclass(frozen=True)
    class Other:
        n_features: int = 2

        def attributes(self):
            return {}

    class Sized(Other):
        estimated_sizes = Sizes.of("group", np.array([700.0, 300.0]), None)

    for cls in (Other, Sized):
        monkeypatch.setitem(PUBLISHABLE, cls.__name__, cls)
    plain, sized = (Page(report.render(replace(release(), model=model))) for model in (Other(), Sized()))
    assert "holds a Other" in plain.text
    assert plain.tables[1] == 1
    assert "Estimated number of records in each group" in sized.text
    assert "0 700 1 300" in sized.text
    assert sized.tables[1] == 2


@pytest.mark.usefixtures("drawn")
def test_pictures_are_as_high_as_they_need():
    shown = release(has_grid=False)
    flat = replace(shown, domain=Domain((0.0, 0.0), (25.0, 10.0)))
    heights = []
    for each in (shown, flat):
        boxes = Page(report.render(each)).values("viewbox")
        width, height = map(float, boxes[0].split()[2:])
        assert width == pytest.approx(5.2 * 72)
        heights.append(height)
    assert heights[1] < 0.6 * heights[0]


@pytest.mark.usefixtures("drawn")
def test_a_picture_is_drawn_once(monkeypatch):
    """Drawing takes most of the time of a report."""
    draw, drawn = Figure.draw, []
    monkeypatch.setattr(Figure, "draw", lambda self, renderer: drawn.append(self) or draw(self, renderer))
    report.render(release())
    assert len(drawn) == 1
