"""What counts of charges to parts, against every unit there can be."""

import contextlib
import itertools
import random
from fractions import Fraction

import pytest

from sfumato.budget.accounts import Account, Parts
from sfumato.budget.amounts import Budget
from sfumato.errors import BudgetExceededError, ParameterError

NAMES = ("a", "b", "c", "d")
TOTALS = {"pure": Budget(3), "approximate": Budget(3, "1/1000"), "zcdp": Budget(rho=3)}


def parts(most):
    return Parts("letter", NAMES, most)


def random_spend(rng, kind):
    amount = Fraction(rng.randint(1, 40), 40)
    if kind == "zcdp" and rng.random() < 0.5:
        return Budget(rho=amount)
    delta = Fraction(rng.randint(1, 20), 100_000) if kind == "approximate" and rng.random() < 0.5 else 0
    return Budget(amount, delta)


def numbers(budget):
    return budget.rho, budget.epsilon, budget.delta


def losses(account, most):
    """What each unit loses: all charges to the whole, and to its own parts, for each choice of parts."""
    for n in range(most + 1):
        for own in itertools.combinations(NAMES, n):
            paid = [cost for part, cost in account.charges if part is None or part in own]
            yield set(own), sum(paid, Budget.zero(account.total.kind))


def worst(found):
    return tuple(
        max(values, default=None) if None not in values else None for values in zip(*found, strict=True)
    )


def after_random_charges(rng, kind, most, n_charges=12):
    """An account with all of some random charges that fit."""
    account = Account("letters", TOTALS[kind], parts(most))
    for _ in range(n_charges):
        with contextlib.suppress(BudgetExceededError):
            account = account.charged(random_spend(rng, kind), rng.choice([None, *NAMES]))
    return account


@pytest.mark.parametrize("kind", TOTALS)
@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_spent_is_the_largest_loss_of_any_unit(kind, most):
    rng = random.Random(most)
    for _ in range(30):
        account = after_random_charges(rng, kind, most)
        everybody = list(losses(account, most))
        assert all(loss <= account.total for _, loss in everybody)
        assert numbers(account.spent()) == worst([numbers(loss) for _, loss in everybody])
        for part in NAMES:
            inside = worst([numbers(loss) for own, loss in everybody if part in own])
            assert numbers(account.spent(part)) == inside


@pytest.mark.parametrize("kind", TOTALS)
@pytest.mark.parametrize("most", [1, 2, 4])
def test_what_remains_fits_and_nothing_above_it(kind, most):
    rng = random.Random(most)
    above = Budget(rho="1/1000000") if kind == "zcdp" else Budget("1/1000000")
    for _ in range(20):
        account = after_random_charges(rng, kind, most, 6)
        for part in [None, *NAMES]:
            rest = account.remaining(part)
            full = account.charged(rest, part)
            assert all(loss <= account.total for _, loss in losses(full, most))
            with pytest.raises(BudgetExceededError):
                account.charged(rest + above, part)


def test_without_parts_all_charges_add_up():
    account = Account("all", Budget(1)).charged(Budget(0.25)).charged(Budget(0.5))
    assert account.spent() == Budget(0.75)


def test_numbers_of_different_parts_may_be_the_largest():
    """Part a has more epsilon and part b more delta: each unit loses less than both maxima together."""
    account = Account("letters", Budget(2, "1/10"), parts(1))
    account = account.charged(Budget(1, "1/1000"), "a").charged(Budget(0.5, "1/100"), "b")
    assert account.spent() == Budget(1, "1/100")


@pytest.mark.parametrize("kind", TOTALS)
@pytest.mark.parametrize("most", [1, 2, 3])
def test_equal_shares_use_up_the_budget(kind, most):
    rng = random.Random(most)
    for _ in range(50):
        after = account = after_random_charges(rng, kind, most, 3)
        asked = rng.choices([None, *NAMES], k=rng.randint(1, 8))
        share = account.equal_share(asked)
        for part in asked:
            after = after.charged(share, part)
        rests = [numbers(after.remaining(part)) for part in asked]
        for number in zip(*rests, strict=True):
            assert None in number or not all(number)


def test_equal_shares_know_that_parts_do_not_add_up():
    account = Account("letters", Budget(2), parts(1)).charged(Budget(1), "a")
    assert account.equal_share(["a", "b", "b"]) == Budget(1)
    assert account.equal_share(["b", "b", "b"]) == Budget("2/3")
    assert account.equal_share([None, "b"]) == Budget(1)
    with pytest.raises(ParameterError, match="got 'e'"):
        account.equal_share(["e"])


def laplace(epsilon, x):
    """Probability of x under discrete Laplace noise, up to its constant factor."""
    return Fraction(epsilon) ** abs(x)


def loss(n_with, n_without, ratio):
    """Largest ratio of the probabilities of noisy counts, over all outcomes near them."""
    outcomes = itertools.product(range(-6, 12), repeat=len(n_with))
    ratios = []
    for seen in outcomes:
        p = q = Fraction(1)
        for value, here, there in zip(seen, n_with, n_without, strict=True):
            p, q = p * laplace(ratio, value - here), q * laplace(ratio, value - there)
        ratios.append(max(p / q, q / p))
    return max(ratios)


def test_a_person_in_two_months_breaks_a_declaration_of_one():
    """A counter-example, exactly: noisy counts of two months, each at epsilon = ln 2.

    For each row the loss is ln 2, as parallel composition says. A person with a row in both months loses
    2 ln 2. So parts of persons must not count as their maximum unless each person is in one part.
    """
    half = Fraction(1, 2)  # exp(-epsilon)
    assert loss((3, 2), (2, 2), half) == 2
    assert loss((3, 3), (2, 2), half) == 4
    spent = {}
    for most in (1, 2):
        account = Account("stays", Budget(2), Parts("month", ("January", "February"), most))
        spent[most] = account.charged(Budget(0.7), "January").charged(Budget(0.7), "February").spent()
    assert spent == {1: Budget(0.7), 2: Budget(1.4)}
