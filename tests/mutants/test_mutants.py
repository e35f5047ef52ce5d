"""Break the library in known ways: each must be seen by a test of sensitivities, spends, noise or attacks."""

import pytest
from tests.mutants.laboratory import Altered, examine
from tests.mutants.mutants import METER, METERED, MUTANTS, UNMETERED


def test_mutants_are_distinct_and_compile():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert len({Altered(mutant).code for mutant in MUTANTS}) == len(MUTANTS)


def test_the_tests_pass_on_the_library_as_it_is():
    """Otherwise what fails on a mutant says nothing about it."""
    tests = sorted({test for mutant in MUTANTS for test in mutant.killers})
    passed, failures = examine(tests)
    assert failures == []
    assert len(passed) >= len(tests)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_seen(mutant):
    _, failures = examine(mutant.killers, mutant)
    assert failures, "it survives"
    assert failures[0].by_design, failures[0]


@pytest.mark.parametrize(
    "mutant", [mutant for mutant in MUTANTS if mutant.name in METERED], ids=lambda mutant: mutant.name
)
def test_the_meter_alone_sees_it(mutant):
    _, failures = examine([METER + METERED[mutant.name]], mutant)
    assert failures, "it survives"
    assert failures[0].by_design, failures[0]


def test_the_meter_passes_on_the_library_as_it_is():
    passed, failures = examine(sorted({METER + case for case in METERED.values()}))
    assert failures == []
    assert passed


def test_the_meter_sees_a_mutant_or_it_is_said_why_not():
    assert sorted([*METERED, *UNMETERED]) == sorted(mutant.name for mutant in MUTANTS)
