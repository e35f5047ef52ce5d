"""Every sentence and number on a card is one of the release."""

import html
import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from tests.report.mixed import BOUNDS, WARDS, release

from sfumato import DPM, Release, report
from sfumato.domain.columns import Described
from sfumato.errors import ParameterError
from sfumato.plot.columns import day
from sfumato.public.profiles import Profiles
from sfumato.public.profiles.wording import on_cycle, percent, quantity
from sfumato.report import cards as page_of_cards

LABELS = {"age": "Age in years", "ward": "First ward"}
CLUSTERS = range(3)


@pytest.fixture(scope="module")
def shown():
    return release()


@pytest.fixture(scope="module")
def page(shown):
    return page_of_cards.card_section(shown, LABELS)


def card(page, cluster):
    start = page.index(f'aria-labelledby="cluster-{cluster}"')
    return page[start : page.index("</article>", start)]


def mini(page, cluster, title):
    found = card(page, cluster).split('<p class="note faint">')[0].split('<div class="mini">')[1:]
    (own,) = [part for part in found if part.startswith(f"<h4>{title}</h4>")]
    return own


def words(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def rows_of(text):
    """Name, drawing and text of each row of bars."""
    pattern = r'<th scope="row">(.*?)</th><td>(.*?)</td><td class="number">(.*?)</td>'
    return [(html.unescape(a), b, html.unescape(c)) for a, b, c in re.findall(pattern, text)]


def test_shares_that_noise_explains_have_no_bar_and_no_number(shown):
    """Missing values that are all noise: the upper end of the interval is told, nothing is drawn."""
    counts = np.array([[500, 300, 4, 60], [300, 500, 2, 3]])
    edges = (np.array([-0.5, 0.5, 1.5, 2.5]),)
    ward = Described("ward", "level", levels=("Medicine", "Surgery"))
    about = Profiles(
        (ward,), edges, (counts.sum(0),), edges, (counts,), "discrete Gaussian", 45.0, 45.0, False
    )
    missing = about.missing(0, "ward")
    assert missing.low == 0 < missing.value
    own, table_bars = about.bars(0, "ward"), about.bars(None, "ward")
    rows = rows_of(page_of_cards._level_bars(ward, own, table_bars))
    assert [name for name, _, _ in rows] == ["Medicine", "Surgery", "other"]
    assert rows[2][2].startswith("under ")
    assert 'class="bar" x="0" y="1.5" width="0"' in rows[2][1]
    assert "no value" not in page_of_cards.in_words(about, 0, ward)
    assert "other" not in page_of_cards.in_words(about, 0, ward)


def numbers(pattern, text):
    return tuple(map(float, re.search(pattern, text).groups()))


@pytest.mark.parametrize("cluster", range(4))
def test_the_sentence_is_that_of_the_profiles(shown, page, cluster):
    sentence = shown.profiles.sentence(cluster, noun="records", labels=LABELS)
    assert f'<p class="sentence">{html.escape(sentence)}</p>' in card(page, cluster)


def test_the_largest_comes_first(shown, page):
    order = [int(number) for number in re.findall(r'<h3 id="cluster-(\d+)"', page)]
    assert order == np.argsort(-shown.profiles.sizes.estimates).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_size_and_its_interval(shown, page, cluster):
    size, total = shown.profiles.size(cluster), shown.profiles.size(None).value
    name, drawn, _ = rows_of(card(page, cluster))[0]
    assert name == f"{percent(size.value / total, size.low / total, size.high / total)} of all records"
    assert numbers(r'class="bar" x="0" y="1.5" width="([\d.]+)"', drawn)[0] == pytest.approx(
        100 * size.value / total, rel=1e-3
    )
    ends = numbers(r'class="whisker" d="M([\d.]+) 5H([\d.]+)"', drawn)
    assert ends == pytest.approx((100 * size.low / total, 100 * size.high / total), rel=1e-3)


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("name", ["ward", "severity"])
def test_bars_of_levels_are_shares(shown, page, cluster, name):
    profiles, title = shown.profiles, LABELS.get(name, name)
    if name not in [one.column for one in profiles.distinct(cluster)][:4]:
        assert f"<h4>{title}</h4>" not in card(page, cluster)
        return
    shares, table = profiles.share(cluster, name), profiles.share(None, name)
    found = rows_of(mini(page, cluster, title))
    assert len(found) == min(len(shares) - 1, 6)
    longest = 1.02 * max(max(shares[level].high, table[level].value) for level, _, _ in found)
    for level, drawn, text in found:
        assert text == percent(*shares[level])
        ends = numbers(r'class="whisker" d="M([\d.]+) 5H([\d.]+)"', drawn)
        expected = 100 * np.array(shares[level][1:]) / longest
        assert ends == pytest.approx(expected, rel=1e-3, abs=1e-6)
        (mark,) = numbers(r'class="mark" d="M([\d.]+) 0V10"', drawn)
        assert mark == pytest.approx(100 * table[level].value / longest, rel=1e-3, abs=1e-6)
    hidden = len(shares) - 1 - len(found)
    note = f"Of {len(shares) - 1} levels, the {len(found)} most frequent."
    assert (note in mini(page, cluster, title)) == (hidden > 0)
    if name == "severity":
        assert [level for level, _, _ in found] == ["mild", "moderate", "severe", "other"]


@pytest.mark.parametrize("cluster", CLUSTERS)
@pytest.mark.parametrize("name", ["age", "admitted"])
def test_boxes_are_quantiles(shown, page, cluster, name):
    profiles, title = shown.profiles, LABELS.get(name, name)
    if f"<h4>{title}</h4>" not in card(page, cluster):
        assert name not in [one.column for one in profiles.distinct(cluster)][:4]
        return
    column = profiles.column(name)
    quantiles = {
        c: [profiles.quantile(c, name, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)] for c in (cluster, None)
    }
    every = [each.value for own in quantiles.values() for each in own]
    low, width = min(every), max(every) - min(every)
    found = rows_of(mini(page, cluster, title))
    assert [row[0] for row in found] == ["cluster", "table"]
    for (_, drawn, text), own in zip(found, quantiles.values(), strict=True):
        median, half = own[2], (own[2].high - own[2].low) / 2
        whole = quantity(column, median.value, half, is_whole=profiles.is_whole(name))
        assert text == page_of_cards.short_months(whole)
        places = [100 * (each.value - low) / width for each in own]
        assert numbers(r'd="M([\d.]+) 5H([\d.]+)"', drawn) == pytest.approx((places[0], places[4]), abs=0.01)
        start, wide = numbers(r'<rect class="\w+" x="([\d.]+)" y="1.5" width="([\d.]+)"', drawn)
        assert (start, start + wide) == pytest.approx((places[1], places[3]), abs=0.01)
        assert numbers(r'class="median" d="M([\d.]+) 0V10"', drawn)[0] == pytest.approx(places[2], abs=0.01)
    if name == "admitted":
        assert day(low, column.low, column.high) in words(mini(page, cluster, title))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_cycles_are_shares_of_their_parts(shown, page, cluster):
    profiles = shown.profiles
    own, whole = profiles.bars(cluster, "hour"), profiles.bars(None, "hour")
    drawn = mini(page, cluster, "hour")
    top = max(own.highs[:-1].max(), whole.shares[:-1].max())
    heights = [float(height) for height in re.findall(r'height="([\d.]+)"/>', drawn)]
    np.testing.assert_allclose(heights, 40 * own.shares[:-1] / top, rtol=2e-3, atol=0.02)
    told = profiles.direction(cluster, "hour")
    at = on_cycle(profiles.column("hour"), told.value, (told.high - told.low) / 2)
    assert f"Around {at}." in drawn
    assert words(drawn).startswith("hour 00:00 06:00 12:00 18:00 00:00")


def test_what_does_not_differ_is_named_and_not_drawn(shown, page):
    for cluster in CLUSTERS:
        unclear = [one.column for one in shown.profiles.distinct(cluster) if not one.is_clear]
        assert "insured" in unclear
        text = f"No difference from the other records that stands out from the noise: {', '.join(unclear)}."
        assert f'<p class="note faint">{text}</p>' in card(page, cluster)


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_all_columns_are_told_on_demand(shown, page, cluster):
    told = card(page, cluster).split("<details>")[1]
    for name in BOUNDS:
        assert f'<th scope="row">{LABELS.get(name, name)}</th>' in told
    median = shown.profiles.quantile(cluster, "age", 0.5)
    text = quantity(shown.profiles.column("age"), median.value, (median.high - median.low) / 2, is_whole=True)
    assert f"median {text} (" in told
    best, share = max(shown.profiles.share(cluster, "insured").items(), key=lambda pair: pair[1].value)
    assert f"{best} {percent(*share)} ({share.low:.0%} to {share.high:.0%})" in told


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_no_other_number_is_on_a_card(shown, page, cluster):
    """Take away what the tests above account for: no digit is left in the text."""
    profiles = shown.profiles
    text = words(card(page, cluster).split(">", 1)[1].split("<details>")[0])
    known = [f"Cluster {cluster}", words(html.escape(profiles.sentence(cluster, "records", LABELS)))]
    for part in card(page, cluster).split("<details>")[0].split('<div class="mini">')[1:]:
        for name, _, told in rows_of(part):
            known += [f"{name} {told}", name, told]
        known += re.findall(r"Of \d+ levels, the \d+ most frequent\.|Around [^<]*\.", part)
        known += [words(ends) for ends in re.findall(r'<div class="ends">(.*?)</div>', part)]
    known.append(rows_of(card(page, cluster))[0][0])
    for each in sorted(known, key=len, reverse=True):
        text = text.replace(each, " ")
    assert not re.search(r"\d", text), text


def test_what_noise_hides_is_grey_and_says_so(shown, page):
    size = shown.profiles.size(3)
    assert (size.high - size.low) / 2 > size.value / 2
    own = card(page, 3)
    assert own.startswith('aria-labelledby="cluster-3"')
    assert '<article class="card faint" aria-labelledby="cluster-3"' in page
    assert "The noise hides what this cluster is like." in own
    assert "<svg" not in own
    assert "details" not in own


def test_a_card_tells_of_the_centre_if_noise_hides_the_profile(monkeypatch):
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 6_000)
    heat, rain = rng.normal(np.array([5, 20, 35])[group], 2), rng.normal(20, 3, 6_000)
    bounds = {"heat": (-20, 60, "C"), "rain": (0, 40, "mm")}
    model = DPM(3, epsilon=4.0, bounds=bounds, random_state=0).fit(pd.DataFrame({"heat": heat, "rain": rain}))
    told = "The centre says more than these counts: "
    assert told not in page_of_cards.card_section(model.release_, {})  # the profile tells it
    monkeypatch.setattr(Profiles, "sentence", lambda *_, **__: "About 5 rows. The noise hides the rest.")
    text = page_of_cards.card_section(model.release_, {"heat": "Temperature"})
    found = sorted(float(heat) for heat in re.findall(rf"{told}Temperature (\S+) ± \S+ C", text))
    assert found == pytest.approx([5, 20, 35], abs=1) or found == pytest.approx([5, 35], abs=1)


def test_a_median_that_noise_hides_is_grey(shown):
    profiles = replace(shown.profiles, std=400.0)
    text = page_of_cards.card_section(replace(shown, profiles=profiles), {})
    hidden = [page_of_cards.is_hidden_median(profiles, 0, name) for name in ("age", "admitted")]
    assert any(hidden)
    assert "hidden by noise" in text


def test_many_clusters_have_few_cards(shown, monkeypatch):
    monkeypatch.setattr(page_of_cards, "MOST_CARDS", 2)
    text = page_of_cards.card_section(shown, {})
    assert text.count("<article") == 2
    rest = sum(shown.profiles.size(cluster).value for cluster in (2, 3))
    assert f"Without a card: 2 smaller clusters, about {rest:,.0f} records in total." in text


def test_titles_and_labels_are_shown_as_text(shown):
    hostile = "<script>alert(1)</script>"
    text = report.render(shown, title=f"Stays {hostile}", labels={"age": hostile, "ward": "First ward"})
    assert f"<h1>Stays {html.escape(hostile)}</h1>" in text
    assert hostile not in text
    assert f"<h4>{html.escape(hostile)}</h4>" in text
    assert '<th scope="col">First ward</th>' in text
    assert shown.checksum() in text


def test_labels_are_those_of_columns(shown):
    with pytest.raises(ParameterError, match=r"must name columns of the release, age, admitted.*got 'los'"):
        report.render(shown, labels={"los": "Days"})
    with pytest.raises(ParameterError, match="must be a text, got ''"):
        report.render(shown, labels={"age": ""})


def test_the_page_has_a_section_of_cards(shown):
    text = report.render(shown)
    assert '<a href="#clusters">Clusters</a>' in text
    assert text.index('id="clusters"') < text.index('id="findings"')
    size = shown.profiles.size(None)
    assert f"{size.value:,.0f} ({size.low:,.0f} to {size.high:,.0f})" in text
    plain = report.render(release(has_profiles=False))
    assert "#clusters" not in plain
    assert "Records</dt><dd>not released" in plain


def test_cards_from_a_file(shown, tmp_path):
    loaded = Release.load(shown.save(tmp_path / "release.json"))
    assert report.render(loaded) == report.render(shown)


def test_many_levels_are_cut(page):
    assert len(WARDS) == 50
    assert f"Of {len(WARDS) + 1} levels, the 6 most frequent." in page


def test_months_are_short():
    assert page_of_cards.short_months("2 March 2024") == "2 Mar 2024"
    assert page_of_cards.short_months("May 2024") == "May 2024"
    assert page_of_cards.short_months("5,000 mmol/l") == "5,000 mmol/l"
