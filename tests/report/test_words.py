"""Typical words on the report: those of the release, escaped, on cards or in a table of their own."""

import re
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from tests.report.mixed import release

from sfumato import report
from sfumato.public.terms import Terms
from sfumato.report.cards import card_section

COUNTS = np.array([[400, 3, 500], [2, 700, 500], [5, 4, 500]])
WORDS = ("cat", "<b>bank", "new")


def with_terms(**changes):
    shown = release()
    k = shown.profiles.n_clusters
    counts = np.vstack([COUNTS, np.tile(COUNTS[2], (k - 3, 1))])
    terms = Terms(WORDS, counts, np.full(k, 1000), "discrete Gaussian", 8.0, 5, 1.0, found=True)
    return replace(shown, terms=terms, **changes)


def test_cards_name_typical_words():
    page = card_section(with_terms(), {})
    told = {
        number: page[page.index(f'aria-labelledby="cluster-{number}"') :].partition("</article>")[0]
        for number in range(3)
    }
    assert "Typical words: cat." in told[0]
    assert "Typical words: &lt;b&gt;bank." in told[1]
    assert "No word stands out from the noise." in told[2]
    assert "40 %" in told[0]
    assert "<b>bank" not in page


def test_without_profiles_a_table_names_them():
    page = card_section(with_terms(profiles=None), {})
    assert 'id="clusters"' in page
    rows = re.findall(r'<tr><th scope="row">(\d)</th>.*?<td>(.*?)</td></tr>', page)
    assert ("0", "cat") in rows
    assert ("2", "No word stands out from the noise.") in rows
    assert "found in the texts" in page


@pytest.mark.parametrize("change", [{}, {"profiles": None}])
def test_the_whole_page_has_them(change):
    page = report.render(with_terms(**change))
    assert "Typical words" in page
    assert 'href="#clusters"' in page


def test_no_terms_no_words():
    assert "Typical words" not in report.render(release())
    assert card_section(replace(release(), profiles=None), {}) == ""
