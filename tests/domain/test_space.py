"""Public facts: bounds, lattice and privacy unit."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sfumato.domain import LATTICE_RADIUS, Ball, Domain, Unit, clipping, space
from sfumato.domain.measure import Measure
from sfumato.errors import ParameterError

HUGE = [1e300, -1e300, np.finfo(float).max, -np.finfo(float).max, 5e-324, -5e-324, 0.0, -0.0, 1e-310]


def extremes(d):
    return np.array(list(product(HUGE, repeat=d)))


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (None, ["`bounds` must be given", "bounds=(low, high)"]),
        ("01", ["pair (low, high)", "'01'"]),
        (5, ["pair (low, high)", "5"]),
        ((0, 1, 2), ["pair (low, high)"]),
        ({"low": 0, "high": 1}, ["pair (low, high)"]),
        (("a", 1), ["`low`", "'a'"]),
        ((0, "b"), ["`high`", "'b'"]),
        ((None, 1), ["`low`"]),
        (([0, 0, 0], 1), ["`low`", "2 numbers", "(3,)"]),
        ((0, [1]), ["`high`", "2 numbers", "(1,)"]),
        (([[0, 0]], 1), ["`low`", "(1, 2)"]),
        ((np.nan, 1), ["`low` must be finite", "nan"]),
        ((0, np.inf), ["`high` must be finite", "inf"]),
        ((-np.inf, [1, 1]), ["`low` must be finite", "inf"]),
        (([0, np.nan], 1), ["`low` must be finite"]),
        ((1, 0), ["low < high", "1.0", "0.0"]),
        ((1, 1), ["low < high"]),
        (([0, 2], [1, 2]), ["low < high"]),
        ((0j, 1), ["`low`"]),
        ((0, 10**400), ["`high` must be a number"]),
        ((-1e308, 1e308), ["at most 1e+140", "Rescale"]),
        ((0, 1e-300), ["at least 2e-140", "Rescale"]),
        ((1e15, 1e15 + 1), ["at least 1e-12 times their size apart", "Subtract"]),
        (([0, -1e3], [1, -1e3 + 2e-10]), ["at least 1e-12 times their size apart"]),
        ([(0, 10), (20, 30)], ["([0.0, 10.0], [20.0, 30.0])", "([0.0, 20.0], [10.0, 30.0])"]),
        (((0, 10), (20, 30)), ["tuple of two lists", "([0.0, 20.0], [10.0, 30.0])"]),
        ([[0, 10], [20, 30]], ["tuple of two lists"]),
        (np.array([[0, 10], [20, 30]]), ["tuple of two lists"]),
        ([(0, 10), (5, 8)], ["tuple of two lists"]),
        (((0, 1), ("a", 1)), ["`high`"]),
        (Ball(0), ["`radius` must be positive", "0"]),
        (Ball(-1), ["`radius` must be positive", "-1"]),
        (Ball(np.nan), ["`radius` must be finite"]),
        (Ball(np.inf), ["`radius` must be finite"]),
        (Ball("x"), ["`radius`", "'x'"]),
        (Ball([1, 2]), ["`radius`"]),
        (Ball(1, [0, 0, 0]), ["`center`", "2 numbers"]),
        (Ball(1, np.nan), ["`center` must be finite"]),
        (Ball(1, "x"), ["`center`"]),
        (Ball(1, 1e20), ["low < high"]),
    ],
)
def test_bad_bounds_are_refused_by_name(bounds, words):
    with pytest.raises(ParameterError) as error:
        Domain.from_bounds(bounds, 2)
    assert all(word in str(error.value) for word in words), str(error.value)


@pytest.mark.parametrize(
    "bounds",
    [
        (-1, 2),
        (-1.0, [2, 2]),
        ([-1, -1], 2),
        [[-1, -1], [2, 2]],
        np.array([[-1, -1], [2, 2]]),
        ((-1, -1), np.array([2.0, 2.0])),
        (np.float32(-1), np.int64(2)),
        (Fraction(-1), 2),
    ],
)
def test_bounds_are_broadcast(bounds):
    domain = Domain.from_bounds(bounds, 2)
    assert (domain.low, domain.high) == ((-1.0, -1.0), (2.0, 2.0))
    assert domain.unit == Unit()
    assert domain.n_features == 2


@pytest.mark.parametrize(
    ("bounds", "n_features"),
    [
        (([0, 10], [20, 30]), 2),
        ((np.array([0, 10]), (20, 30)), 2),
        (((0, 10), [20, 30]), 2),
        ([[0, 10, 0], [20, 30, 1]], 3),  # pairs would be three
        (((0, 10, 0), (20, 30, 1)), 3),
        ([0, 20], 2),
        ([(10, 0), (30, 20)], 2),  # no pairs: each would have low > high
    ],
)
def test_bounds_that_mean_one_thing_are_a_low_and_a_high(bounds, n_features):
    domain = Domain.from_bounds(bounds, n_features)
    low, high = np.broadcast_arrays(*(np.asarray(part) for part in bounds))
    if low.ndim:
        assert (domain.low, domain.high) == (tuple(low), tuple(high))


@pytest.mark.parametrize("n_features", [0, -1, 2.0, "2", True, 2**20 + 1, 10**30])
def test_the_number_of_columns_is_limited(n_features):
    with pytest.raises(ParameterError, match="`n_features` must be an integer >= 1 and at most"):
        Domain.from_bounds((0, 1), n_features)


def test_a_ball_is_its_box_and_radius():
    domain = Domain.from_bounds(Ball(2.0, [1.0, -1.0]), 2)
    assert (domain.low, domain.high, domain.radius) == ((-1.0, -3.0), (3.0, 1.0), 2.0)
    assert (domain.midpoint == [1.0, -1.0]).all()
    assert (domain.lattice_step == 2.0 / LATTICE_RADIUS).all()


def test_a_ball_far_from_the_origin_has_one_step_for_all_columns():
    domain = Domain.from_bounds(Ball(1.0, [0.0, 1e10 / 3]), 2)
    assert len(set(domain.lattice_step)) == 1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"max_rows": 0, "column": "person"}, "max_rows_per_unit"),
        ({"max_rows": -1, "column": "person"}, "max_rows_per_unit"),
        ({"max_rows": 10**400, "column": "person"}, "2**40"),
        ({"max_rows": 1.5, "column": "person"}, "1.5"),
        ({"max_rows": True, "column": "person"}, "True"),
        ({"max_rows": "3", "column": "person"}, "'3'"),
        ({"max_rows": 2}, "`unit` is None"),
    ],
)
def test_bad_units(arguments, word):
    with pytest.raises(ParameterError, match="max_rows_per_unit") as error:
        Unit(**arguments)
    assert word in str(error.value)


@pytest.mark.parametrize("column", [5, b"person", ("person",), True, ""])
def test_a_unit_is_a_name(column):
    with pytest.raises(ParameterError, match="`unit` must be the name of a column"):
        Unit(column)


def test_units_in_words():
    assert str(Unit()) == "one row"
    assert str(Unit("person")) == "one person (column 'person', at most 1 row each)"
    assert "at most 3 rows" in str(Unit("person", 3))


BOXES = [
    Domain.from_bounds((-1, 1), 2),
    Domain.from_bounds((0, 1), 3),
    Domain.from_bounds(([-1e-3, 5.0, -1e9], [1e-3, 5.1, 1e9]), 3),
    Domain.from_bounds((1e6, 1e6 + 1), 1),
    Domain.from_bounds((-1e-139, 1e139), 2),
]
BALLS = [
    Domain.from_bounds(Ball(1.0), 2),
    Domain.from_bounds(Ball(0.5, [1.0, 2.0, 3.0]), 3),
    Domain.from_bounds(Ball(1e-100), 2),
    Domain.from_bounds(Ball(3.0), 50),
    Domain.from_bounds(Ball(1.0, 1e12), 2),
]


def some_rows(domain, n=2000):
    """Rows inside, on the border of, and far outside of a domain."""
    rng, d = np.random.default_rng(0), domain.n_features
    inside = rng.uniform(domain.low, domain.high, size=(n, d))
    around = domain.midpoint + rng.normal(size=(n, d)) * domain.half_width * 10
    directions = rng.normal(size=(n, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    sphere = domain.midpoint + directions * domain.half_width
    axes = np.concatenate([domain.midpoint + np.diag(domain.half_width), [domain.low, domain.high]])
    diagonal = np.array([domain.midpoint + domain.half_width / math.sqrt(d)])
    far = np.random.default_rng(1).choice(HUGE, size=(200, d))
    return np.concatenate([inside, around, sphere, axes, diagonal, far, *([extremes(d)] if d < 4 else [])])


@pytest.mark.parametrize("domain", BOXES)
def test_box_lattice_stays_within_its_radius(domain):
    units = domain.to_lattice(some_rows(domain))
    assert units.dtype == np.int64
    assert int(np.abs(units).max()) == LATTICE_RADIUS  # reached, and not passed


@pytest.mark.parametrize("domain", BALLS)
def test_ball_lattice_norms_are_bounded_in_exact_integers(domain):
    units = domain.to_lattice(some_rows(domain))
    squares = [sum(int(u) ** 2 for u in row) for row in units]
    assert max(squares) <= LATTICE_RADIUS**2
    reached = math.isqrt(max(squares))
    assert reached >= LATTICE_RADIUS - 2 - domain.n_features, (
        "rows outside must come to the sphere, not inside it"
    )


def test_ball_lattice_with_many_columns_of_equal_size():
    """The largest rounding error of a norm: many equal squares."""
    d = 2**17
    domain = Domain.from_bounds(Ball(1.0), d)
    for value in (1.0, 0.1, 1 / 3, 1e300, 1 / math.sqrt(d), np.nextafter(1 / math.sqrt(d), 1)):
        (units,) = domain.to_lattice(np.full((1, d), value))
        assert int(units[0]) ** 2 * d <= LATTICE_RADIUS**2
        assert (units == units[0]).all()


@pytest.mark.parametrize("domain", BOXES[:4])
def test_box_round_trip_is_within_half_a_step(domain):
    rows = np.random.default_rng(0).uniform(domain.low, domain.high, size=(5000, domain.n_features))
    error = np.abs(domain.from_lattice(domain.to_lattice(rows)) - rows)
    ulp = np.spacing(np.maximum(np.abs(domain.low), np.abs(domain.high)))
    assert (error <= domain.lattice_step / 2 + 4 * ulp).all()


@pytest.mark.parametrize("domain", BALLS[:2])
def test_ball_round_trip_is_within_two_steps(domain):
    rng = np.random.default_rng(0)
    rows = domain.midpoint + rng.normal(size=(2000, domain.n_features)) * domain.radius / 10
    error = np.abs(domain.from_lattice(domain.to_lattice(rows)) - rows)
    assert (error <= 1.01 * domain.lattice_step).all()


def test_lattice_points_map_to_themselves():
    domain = Domain.from_bounds((-1, 1), 2)
    units = np.random.default_rng(0).integers(-LATTICE_RADIUS, LATTICE_RADIUS + 1, size=(1000, 2))
    assert (domain.to_lattice(domain.from_lattice(units)) == units).all()


def test_clipping_a_box():
    domain = Domain.from_bounds(([0, -1], [1, 1]), 2)
    clipped = domain.clip([[5, 0.5], [-1e300, 1e300], [0.25, -0.25]])
    assert clipped.tolist() == [[1.0, 0.5], [0.0, 1.0], [0.25, -0.25]]


def test_clipping_a_ball_keeps_the_direction():
    domain = Domain.from_bounds(Ball(1.0), 2)
    clipped = domain.clip([[30.0, 40.0], [0.3, 0.4], [0.0, -1e200]])
    assert clipped == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, -1.0]]), abs=1e-8)
    assert (np.linalg.norm(clipped, axis=1) <= 1).all()


@pytest.mark.parametrize("domain", BOXES)
def test_clipping_a_box_is_that_of_numpy(domain):
    rows = some_rows(domain)
    assert (domain.clip(rows) == np.clip(rows, domain.low, domain.high)).all()


@pytest.mark.parametrize("domain", [*BOXES, *BALLS])
def test_a_clipped_row_does_not_depend_on_the_others(domain):
    rows = some_rows(domain, n=50)
    order = np.random.default_rng(2).permutation(len(rows))
    whole = domain.clip(rows)
    assert (domain.clip(rows[order]) == whole[order]).all()
    assert all((domain.clip(row[None, :]) == clipped).all() for row, clipped in zip(rows, whole, strict=True))


@pytest.mark.parametrize("dtype", ["float32", "int16", "bool", ">f8"])
@pytest.mark.parametrize("bounds", [(-1, 1), Ball(1.0)])
def test_clipping_takes_any_dtype_and_order_and_changes_nothing(dtype, bounds):
    domain = Domain.from_bounds(bounds, 3)
    rows = np.asfortranarray(np.random.default_rng(0).normal(size=(20, 3)).astype(dtype))
    before = rows.copy()
    rows.flags.writeable = False
    clipped = domain.clip(rows)
    assert clipped.shape == (20, 3)
    assert clipped.dtype == np.float64
    assert clipped.flags.c_contiguous
    assert (clipped == domain.clip(np.array(rows.tolist(), dtype=np.float64))).all()
    assert (rows == before).all()
    assert domain.clip(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("domain", [*BOXES, *BALLS[:3]])
def test_lattice_and_clipping_kernels_without_the_compiler(domain, monkeypatch):
    rows = some_rows(domain, n=100)
    expected = domain.to_lattice(rows), domain.clip(rows)
    for name in ("box_lattice", "ball_lattice"):
        monkeypatch.setattr(space, name, getattr(space, name).py_func)
    monkeypatch.setattr(clipping, "clip_to_box", clipping.clip_to_box.py_func)
    with np.errstate(all="ignore"):
        assert (domain.to_lattice(rows) == expected[0]).all()
        assert (domain.clip(rows) == expected[1]).all()


@pytest.mark.parametrize("d", [1, 2, 9, 300])
@pytest.mark.parametrize("n_outside", [0, 1, 40, 100])
@pytest.mark.parametrize("compiled", [True, False])
def test_a_box_drops_the_rows_outside_and_no_other(d, n_outside, compiled, monkeypatch):
    rng = np.random.default_rng(n_outside)
    rows = rng.uniform(-1, 1, (100, d))
    rows[0], rows[1] = -1.0, 1.0
    places = rng.permutation(100)[:n_outside]
    rows[places, rng.integers(d, size=n_outside)] = rng.choice(
        [np.nan, np.inf, -np.inf, 1.5, -9.0], n_outside
    )
    if not compiled:
        for name in ("copied_inside", "take_inside"):
            monkeypatch.setattr(space, name, getattr(space, name).py_func)
    domain = Domain.from_bounds((-1, 1), d, outside="drop")
    expected = np.delete(rows, places, axis=0)
    found = domain.admitted(rows)
    assert (found == expected).all()
    assert found.flags.c_contiguous
    assert not np.shares_memory(found, rows)
    assert (domain.admits(rows).sum(), len(found)) == (len(expected), len(expected))


@pytest.mark.parametrize("d", [1, 2, 9, 300])
@pytest.mark.parametrize("measured", [False, True])
def test_a_ball_admits_the_points_of_its_lattice(d, measured):
    rng = np.random.default_rng(d)
    domain = Domain.from_bounds(Ball(0.7, 0.1), d)
    if measured:
        domain = replace(domain, measure=Measure((0.25,) * d, (3.0,) * d))
    rows = np.concatenate([rng.normal(size=(50, d)) / np.sqrt(d), rng.choice([1e300, -1e9, 5e-324], (9, d))])
    inside = domain.from_lattice(domain.to_lattice(rows))
    assert (domain.clip(rows) == inside).all()
    assert (domain.admitted(rows) == domain.measure.of(inside)).all()
    broken = np.where(rng.random(rows.shape) < 0.1 / d, np.nan, rows)
    assert (domain.admitted(broken) == domain.admitted(broken[np.isfinite(broken).all(axis=1)])).all()
