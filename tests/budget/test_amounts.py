import copy
import json
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.budget.amounts import Budget, as_exact
from sfumato.errors import BudgetExceededError, ParameterError

amounts = st.fractions(min_value=Fraction(1, 10**6), max_value=100)
small_deltas = st.fractions(min_value=0, max_value=Fraction(1, 4))


@pytest.mark.parametrize(
    "written",
    [0.1, "0.1", "1/10", "1e-1", Fraction(1, 10), Decimal("0.1"), np.float64(0.1), np.float32(0.1)],
)
def test_a_number_is_taken_as_it_was_written(written):
    assert Budget(written).epsilon == Fraction(1, 10)


@pytest.mark.parametrize("written", [2, 2.0, "2", np.int64(2), np.uint8(2), Decimal(2)])
def test_whole_numbers_of_every_type_are_equal(written):
    budget = Budget(written)
    assert budget == Budget(2)
    assert type(budget.epsilon) is Fraction
    assert type(budget.epsilon.numerator) is int


def test_ten_charges_of_a_tenth_are_exactly_one():
    assert sum([Budget(0.1)] * 10, Budget.zero()) == Budget(1)


def test_kinds():
    assert Budget(1).kind == "pure"
    assert Budget(1, 0.0).kind == "pure"
    assert Budget(1, 1e-6).kind == "approximate"
    assert Budget(rho=0.5).kind == "zcdp"


def test_unset_numbers_are_none():
    assert (Budget(1).delta, Budget(1).rho) == (0, None)
    assert (Budget(rho=1).epsilon, Budget(rho=1).delta) == (None, 0)


BAD_AMOUNTS = [
    0,
    -1,
    0.0,
    -0.5,
    float("nan"),
    float("inf"),
    float("-inf"),
    np.float64("nan"),
    Decimal("NaN"),
    Decimal("Infinity"),
    True,
    np.True_,
    "one",
    "",
    "nan",
    "inf",
    "1/0",
    "0",
    [1],
    1j,
]


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("bad", BAD_AMOUNTS, ids=repr)
def test_amounts_that_are_no_positive_number_are_refused(name, bad):
    with pytest.raises(ParameterError, match=f"`{name}` must be .*, got "):
        Budget(**{name: bad})


@pytest.mark.parametrize("bad", [-1e-9, 1, 1.5, float("nan"), "x", False, None])
def test_delta_outside_its_range_is_refused(bad):
    with pytest.raises(ParameterError, match=r"`delta` must be .*, got "):
        Budget(1, bad)


@pytest.mark.parametrize("bad", ["1e999999999", "1e-999999999", Decimal("1e400"), 10**101, "1" * 5000])
def test_absurd_magnitudes_are_refused_at_once(bad):
    with pytest.raises(ParameterError, match="between 1e-100 and 1e100"):
        Budget(bad)


def test_absurd_lengths_are_refused():
    with pytest.raises(ParameterError, match="at most 14000 bits"):
        Budget(10**5000)
    with pytest.raises(ParameterError, match="at most 14000 bits"):
        Budget(Fraction(3**9000, 2**14_500))


def test_epsilon_and_rho_exclude_each_other():
    with pytest.raises(ParameterError, match="got both"):
        Budget(1, rho=1)
    with pytest.raises(ParameterError, match="got neither"):
        Budget()
    with pytest.raises(ParameterError, match="`delta` must be 0 with `rho`, got 1e-06"):
        Budget(delta=1e-6, rho=1)


def test_refusals_echo_the_parameter_and_give_the_fix():
    with pytest.raises(ParameterError, match=r"`epsilon` must be a positive, finite number, got -1\. Write"):
        Budget(-1)


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (Budget(1), "epsilon=1"),
        (Budget(1, 1e-5), "epsilon=1, delta=1e-05"),
        (Budget(rho=0.5), "rho=0.5"),
        (Budget("1/3"), "epsilon=0.333334"),
        (Budget(0.1234567), "epsilon=0.1234567"),
        (Budget.zero(), "epsilon=0"),
        (Budget.zero("zcdp"), "rho=0"),
    ],
)
def test_text_is_readable(budget, text):
    assert str(budget) == text


@pytest.mark.parametrize("budget", [Budget("1/3", 1e-6), Budget(0.1), Budget(rho="2/7")])
def test_repr_is_exact(budget):
    assert eval(repr(budget)) == budget


@given(amounts, small_deltas)
def test_records_are_exact_json(epsilon, delta):
    for budget in (Budget(epsilon, delta), Budget(rho=epsilon), Budget.zero(), Budget.zero("zcdp")):
        assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


def test_record_format():
    assert Budget(0.1).to_dict() == {"epsilon": "1/10"}
    assert Budget(1, 1e-6).to_dict() == {"epsilon": "1", "delta": "1/1000000"}
    assert Budget(rho=0.5).to_dict() == {"rho": "1/2"}


@pytest.mark.parametrize(
    "record",
    [{}, {"delta": "1"}, {"rho": "1", "delta": "0"}, {"epsilon": "-1"}, {"epsilon": "1", "delta": "1"}],
)
def test_bad_records_are_refused(record):
    with pytest.raises(ParameterError, match="`record` must"):
        Budget.from_dict(record)


@given(amounts, amounts, small_deltas, small_deltas)
def test_sums_and_differences_are_exact(a, b, delta_a, delta_b):
    first, second = Budget(a, delta_a), Budget(b, delta_b)
    both = first + second
    assert (both.epsilon, both.delta) == (a + b, delta_a + delta_b)
    assert both - second == first
    assert first <= both
    assert both >= second
    assert not both <= first


def test_order_is_partial():
    assert not Budget(1, 1e-6) <= Budget(2, 1e-7)
    assert not Budget(2, 1e-7) <= Budget(1, 1e-6)


def test_pure_and_approximate_mix():
    assert Budget(1) + Budget(1, 1e-6) == Budget(2, 1e-6)
    assert Budget(1) <= Budget(1, 1e-6)


@pytest.mark.parametrize("operation", [Budget.__add__, Budget.__sub__, Budget.__le__, Budget.excess_over])
def test_rho_and_epsilon_do_not_mix(operation):
    with pytest.raises(ParameterError, match="must not be mixed, got"):
        operation(Budget(rho=1), Budget(1))


def test_a_budget_mixes_with_budgets_only():
    with pytest.raises(TypeError):
        Budget(1) + 1
    with pytest.raises(TypeError):
        Budget(1) - 0.5
    with pytest.raises(TypeError):
        _ = Budget(1) <= 2


def test_a_vacuous_delta_is_refused():
    with pytest.raises(ParameterError, match="below 1"):
        Budget(1, 0.6) + Budget(1, 0.4)


def test_overdraft_says_requested_remaining_difference():
    with pytest.raises(
        BudgetExceededError, match=r"requested epsilon=1, remaining epsilon=0\.75, difference epsilon=0\.25"
    ):
        Budget(0.75) - Budget(1)


def test_overdraft_of_delta_alone():
    with pytest.raises(BudgetExceededError, match="difference epsilon=0, delta=1e-06"):
        Budget(5, 1e-6) - Budget(1, 2e-6)


def test_nothing_is_a_false_budget():
    assert not Budget(1) - Budget(1)
    assert Budget(1) - Budget(1) == Budget.zero()
    assert Budget(rho=1) - Budget(rho=1) == Budget.zero("zcdp")
    assert Budget.zero("approximate") == Budget.zero()
    assert Budget(1)
    assert Budget(1, 1e-6) - Budget(1)


def test_pure_budgets_in_rho():
    assert Budget(0.1).as_zcdp() == Budget(rho="1/200")
    assert Budget(rho=1).as_zcdp() == Budget(rho=1)
    with pytest.raises(ParameterError, match="`delta` must be 0"):
        Budget(1, 1e-6).as_zcdp()


def test_a_budget_is_a_value():
    budget = Budget(1, 1e-6)
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert copy.deepcopy(budget) == budget
    assert len({budget, Budget("1", "1e-6")}) == 1
    with pytest.raises(AttributeError):
        budget.epsilon = Fraction(2)


def test_exact_numbers_may_have_any_sign():
    assert as_exact("share", -0.5) == Fraction(-1, 2)
    assert as_exact("share", 0) == 0


def test_what_remains_is_rounded_down():
    remaining = Budget(1) - Budget("1/3")
    assert f"{remaining}" == str(remaining) == "epsilon=0.666667"
    assert f"{remaining:down}" == "epsilon=0.666666"
    assert f"{Budget(0.1, 1e-5):down}" == "epsilon=0.1, delta=1e-05"
    with pytest.raises(
        BudgetExceededError, match=r"remaining epsilon=0\.333333, difference epsilon=0\.666667"
    ):
        Budget("1/3") - Budget(1)
    with pytest.raises(ValueError, match="must be empty or 'down', got 'x'"):
        f"{remaining:x}"
