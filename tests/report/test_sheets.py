import numpy as np
import pytest

from sfumato.report.sheets import Axis, Sheet, Tick, number, round_ticks, text


@pytest.mark.parametrize(
    ("low", "high", "most", "wanted"),
    [
        (0.0, 10.0, 5, ["0", "2", "4", "6", "8", "10"]),
        (-122.6, -122.2, 2, ["-122.6", "-122.4", "-122.2"]),
        (0.0, 1.0, 4, ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        (0.003, 0.017, 6, ["0.0050", "0.0075", "0.0100", "0.0125", "0.0150"]),
        (3.0, 27.0, 6, ["5", "10", "15", "20", "25"]),
        (0.0, 1e7, 2, ["0", "5000000", "10000000"]),
    ],
)
def test_ticks_are_round_and_few(low, high, most, wanted):
    values, digits = round_ticks(low, high, most)
    assert [f"{value:.{digits}f}" for value in values] == wanted


def test_ticks_of_any_axis_stay_inside_and_within_their_number():
    rng = np.random.default_rng(0)
    for _ in range(300):
        low = rng.normal() * 10.0 ** rng.integers(-6, 7)
        width, most = 10.0 ** rng.uniform(-3, 6), int(rng.integers(2, 7))
        values, _ = round_ticks(low, low + width, most)
        assert 1 <= len(values) <= most + 1
        assert low - 1e-6 * width <= min(values) <= max(values) <= low + width * (1 + 1e-6)


def test_an_axis_runs_from_its_start_to_its_end():
    sheet = Sheet(Axis(0, 4, 10, 50), Axis(0, 2, 100, 20))
    assert sheet.point(np.array([0, 0])) == (10, 100)
    assert sheet.point(np.array([4, 2])) == (50, 20)
    assert (sheet.x.scale, sheet.y.scale) == (10, -40)


def test_words_are_escaped_and_numbers_have_an_outline():
    assert text("a < b", 1, 2) == (
        '<text x="1" y="2" font-size="10" text-anchor="start" fill="currentColor">a &lt; b</text>'
    )
    assert "rotate(-90 1 2)" in text("a", 1, 2, turn=-90)
    drawn = number(7, 1, 2, 1.0)
    assert 'paint-order="stroke"' in drawn
    assert drawn.endswith(">7</text>")


def test_axes_name_their_ticks():
    sheet = Sheet(Axis(0, 4, 60, 100), Axis(0, 2, 100, 20))
    drawn = sheet.left([Tick(100, "0"), Tick(20, "2")], "height & more")
    assert drawn.count("<text") == 3
    assert "height &amp; more" in drawn
    assert drawn.count("M60 ") == 2
    assert sheet.below([Tick(60, "0")], "width").count("<text") == 2
