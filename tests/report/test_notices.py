import html
import re
from dataclasses import replace

import matplotlib as mpl
import pytest

mpl.use("Agg")

from tests.report.mixed import release

from sfumato import report
from sfumato.domain import Domain
from sfumato.domain.columns import Coordinate
from sfumato.domain.scaling import Scaling
from sfumato.public.doubts import doubts
from sfumato.report.account import measuring


def words(text):
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.fixture(scope="module")
def plain():
    return words(report.render(release(has_profiles=False)).split("<header>")[1])


def test_what_may_be_published_stands_above_everything(plain):
    assert "You may publish this page the release file" in plain
    assert "Do not publish the table itself" in plain
    assert plain.index("Do not publish") < plain.index("What is protected")


def test_nothing_of_a_seeded_run_may_be_published():
    text = words(report.render(release(has_profiles=False, seeded=True)))
    assert "Publish nothing of this run." in text
    assert "Run it again without a seed." in text
    assert "You may publish" not in text


def test_doubts_are_shown_and_the_rest_is_not_doubted(plain):
    doubted = release(has_profiles=False, std=30.0)
    found = doubts(doubted)
    assert found
    page = report.render(doubted)
    text = words(page)
    assert '<aside class="doubts"' in page
    for sentence in found:
        assert f"{sentence.rstrip('.')}." in text
    assert text.index("Read these results with care") < text.index("What is protected")
    assert ("Read these results with care" in plain) == bool(doubts(release(has_profiles=False)))


def test_numbers_that_noise_hides_are_grey():
    page = report.render(release(has_profiles=False, std=30.0))
    assert '<td class="number faint">30 ± 59 years (hidden by noise)</td>' in page
    assert "What is grey cannot be read" in page
    assert "(hidden by noise)" not in report.render(release(has_profiles=False))


def test_how_columns_were_measured(plain):
    shown = release(has_profiles=False)
    sentence = shown.domain.measure.words
    assert f"{sentence[0].upper()}{sentence[1:]}." in plain


@pytest.mark.parametrize(
    ("weights", "end"), [(None, "alike in width."), ([1, 2], "alike in width, times their weights.")]
)
def test_advice_for_whoever_fits_is_left_out(weights, end):
    domain = Scaling(weights=weights).applied(
        Domain((0.0, 0.0), (4.0, 5.0)), [Coordinate("x"), Coordinate("y")]
    )
    assert "Declare units" in domain.measure.words
    assert words(measuring(replace(release(has_profiles=False), domain=domain))).endswith(end)


def test_dates_categories_ranks_and_cycles_in_the_tables(plain):
    assert "9 Feb 2024" not in plain
    assert "31 Jan 2024 ± 7.2 days" in plain  # 30 days after the start of the year
    assert "Ward 0 71%" in plain
    assert "mild (1 ± 0.039 of 3)" in plain
    assert "ward=" not in plain
    assert "hour (cos)" not in plain
    assert "ward 51 levels Ward 0, Ward 1, Ward 2, Ward 3, Ward 4, Ward 5 and 45 more" in plain
    assert "admitted 1 Jan 2024 31 Dec 2024" in plain
    assert "hour cycle 0 to 24" in plain
    assert "Columns 6" in plain


def test_levels_of_each_cluster_have_one_bar(plain):
    page = report.render(release(has_profiles=False))
    assert "insured: shares of its levels at the centre of each cluster" in plain
    assert page.count('class="bars stacked"') == 2
    assert "45 other levels" in plain
    assert 'class="bars stacked"' not in report.render(release())  # the cards have them


def test_repeated_steps_are_one_line_each(plain):
    budget = plain.split("Where the budget went")[1].split("What was public")[0]
    folded, single = budget.split("All 20 steps, one by one")
    assert "rows 5.0% splits 1–9 45.0% sizes 1–9 45.0% centres 5.0%" in folded
    assert "splits 1–9 9 discrete Laplace 1 (L1) 100 141.4 epsilon=0.09" in folded
    assert "splits 3" not in folded
    assert "splits 3 1 discrete Laplace 1 (L1) 100 141.4 epsilon=0.01" in single
    for text in (folded, single):
        assert "total 20 epsilon=0.2" in text
