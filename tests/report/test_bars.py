import re

import numpy as np
import pytest

from sfumato.report.bars import Bar, Box, Parts, bars, boxes, columns, parts_of_bars

HOSTILE = "<b>&</b>"


def lengths(text, css):
    return [float(width) for width in re.findall(rf'class="{css}" x="[\d.]+" y="1.5" width="([\d.]+)"', text)]


def test_bars_are_as_long_as_their_values():
    text = bars("Sizes", [Bar("a", 30, "30"), Bar("b", 15, "15", (12, 18)), Bar("c", 0, "0")], longest=60)
    assert lengths(text, "bar") == [50, 25, 0]
    assert 'class="whisker" d="M20 5H30"' in text
    assert "<caption>Sizes</caption>" in text


def test_the_longest_bar_or_interval_fits():
    text = bars("", [Bar("a", 30, "30", (20, 51), mark=3)])
    assert lengths(text, "bar")[0] == pytest.approx(100 * 30 / 51 / 1.02, rel=1e-3)
    assert float(re.search(r"5H([\d.]+)", text)[1]) < 100
    assert "<caption>" not in text


def test_small_values_can_be_seen_and_negative_ones_are_none():
    assert lengths(bars("", [Bar("a", 1e-9, ""), Bar("b", 1, ""), Bar("c", -1, "")]), "bar")[::2] == [0.6, 0]
    assert "<tbody></tbody>" in bars("", [])


def test_names_stay_text():
    rows = [Bar(HOSTILE, 1, HOSTILE)]
    texts = [
        bars(HOSTILE, rows),
        boxes([Box(HOSTILE, (0, 1, 2, 3, 4), HOSTILE, (1, 2))], (0, 4), (HOSTILE, HOSTILE)),
        parts_of_bars(HOSTILE, [HOSTILE], [Parts(HOSTILE, [0.5], HOSTILE)], 3),
        columns(np.ones(2) / 2, np.zeros(2), np.ones(2), np.ones(2) / 2, [HOSTILE]),
    ]
    assert all("<b>" not in text for text in texts)
    assert all("&lt;b&gt;" in text for text in texts)


def test_parts_begin_where_the_last_one_ends():
    text = parts_of_bars("Wards", ["a", "b"], [Parts("cluster 0", [0.5, 0.25], "a 50%", is_faint=True)], 7)
    assert re.findall(r'class="part\d" x="([\d.]+)" y="1.5" width="([\d.]+)"', text) == [
        ("0", "50"),
        ("50", "25"),
    ]
    assert "7 other levels" in text
    assert '<tr class="faint">' in text


def test_boxes_that_are_points_can_be_drawn():
    text = boxes([Box("cluster", (1.0,) * 5, "1", (1, 1))], (1.0, 1.0), ("1", "1"))
    assert lengths(text, "bar") == [0.6]
