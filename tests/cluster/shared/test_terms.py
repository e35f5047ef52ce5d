"""`describe_terms`: what it charges, states and refuses, and whose texts count."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Ball, Budget, GridKMeans, Ledger, LloydKMeans, Release
from sfumato.budget.costs import epsilon_at
from sfumato.cluster.shared.terms import TermsAsked, best_max_terms
from sfumato.curator import Noisy
from sfumato.errors import (
    BudgetExceededError,
    DataError,
    GuaranteeWarning,
    NoiseWarning,
    ParameterError,
    ReleaseError,
)

N = 3000
TOPICS = ("cat dog pet vet", "bank loan cash rate", "goal team ball win")
SPEND = {"epsilon": 2, "delta": 1e-6}


def corpus(seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, N)
    rows = 0.9 * np.eye(3)[labels] + rng.normal(0, 0.03, (N, 3))
    noise = [f"word{i}" for i in range(200)]
    texts = [" ".join([*rng.choice(TOPICS[c].split(), 2), *rng.choice(noise, 3)]) for c in labels]
    return rows, texts


ROWS, TEXTS = corpus()


def fitted(cls=LloydKMeans, X=ROWS, **options):
    return cls(3, **({"bounds": Ball(1.2), "epsilon": 1, "delta": 1e-6, "random_state": 0} | options)).fit(X)


def check_topics(terms):
    for own in terms:
        assert own
        assert len({next(i for i, topic in enumerate(TOPICS) if term.term in topic) for term in own}) == 1


def test_terms_tell_the_clusters_apart():
    model = fitted()
    terms = model.describe_terms(TEXTS, **SPEND)
    assert terms is model.terms_ is model.release_.terms
    check_topics(terms)
    assert len({own[0].term for own in terms}) == 3
    exact = 1 - 0.75**2
    assert np.mean([own[0].share.value for own in terms]) == pytest.approx(exact, abs=0.08)


def test_public_terms_need_no_delta():
    model = fitted(delta=0.0)
    check_topics(model.describe_terms(TEXTS, ["cat", "bank", "goal", "word1"], epsilon=1))
    assert model.privacy_.budget == Budget(2)
    assert model.privacy_.spent == Budget(2)
    assert set(model.terms_.terms) == {"cat", "bank", "goal", "word1"}


def test_other_clusterers_have_it():
    terms = fitted(GridKMeans, bounds=(-0.3, 1.3)).describe_terms(TEXTS, **SPEND)
    assert len(terms) == 3


def test_the_statement_is_that_of_both_together():
    model = fitted()
    alone = model.privacy_
    model.describe_terms(TEXTS, **SPEND)
    total = model.privacy_
    assert total.budget == alone.budget + Budget(2, 1e-6)
    assert total.steps[: len(alone.steps)] == alone.steps
    own = total.steps[len(alone.steps) :]
    assert [record.step for record in own] == ["terms", "terms per person", "term counts"]
    assert epsilon_at(own, 1e-6) <= 2 * (1 + 1e-6)
    assert epsilon_at(own, 1e-6) >= 1.9  # what was promised is spent
    assert total.spent <= total.budget
    assert total.epsilon > alone.epsilon
    assert total is model.release_.privacy
    assert total.seeded


def test_each_call_is_charged_and_stated(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.db", "notes", Budget(6, 1e-5), allow_seeded=True)
    model = fitted(ledger=ledger)
    model.describe_terms(TEXTS, **SPEND)
    assert [charge.spend for charge in ledger.history()] == [Budget(1, 1e-6), Budget(2, 1e-6)]
    with pytest.warns(GuaranteeWarning, match="costs as much again"):
        model.describe_terms(TEXTS, **SPEND)
    assert [charge.outcome for charge in ledger.history()] == ["released"] * 3
    assert ledger.history()[-1].method == "LloydKMeans.describe_terms"
    assert model.privacy_.budget == Budget(5, 3e-6)
    with pytest.warns(GuaranteeWarning), pytest.raises(BudgetExceededError):
        model.describe_terms(TEXTS, **SPEND)
    assert model.privacy_.budget == Budget(5, 3e-6)


class Unread(list):
    """Texts that must not be read."""

    def __iter__(self):
        raise AssertionError("a text was read")

    __getitem__ = __iter__


@pytest.mark.parametrize(
    ("texts", "options", "error", "message"),
    [
        (Unread(TEXTS), {"epsilon": 1}, ParameterError, "need a budget with `epsilon` and `delta`"),
        (Unread(TEXTS), {"rho": 0.1}, ParameterError, "need a budget with `epsilon` and `delta`"),
        (Unread(TEXTS[:-1]), SPEND, DataError, "one text for each row"),
        ("some text", SPEND, ParameterError, "list or column of texts"),
        (iter(TEXTS), SPEND, ParameterError, "list or column of texts"),
        (np.zeros(N), SPEND, ParameterError, "must hold text, got float64"),
        (Unread(TEXTS), {**SPEND, "vocabulary": []}, ParameterError, "`vocabulary` must be"),
        (Unread(TEXTS), {**SPEND, "vocabulary": ["a", "a"]}, ParameterError, "`vocabulary` must be"),
        (Unread(TEXTS), {**SPEND, "vocabulary": ["a", 3]}, ParameterError, "terms of `vocabulary`"),
        (Unread(TEXTS), {**SPEND, "vocabulary": "public"}, ParameterError, "'private' or a list"),
        (Unread(TEXTS), {**SPEND, "max_terms": 0}, ParameterError, "`max_terms`"),
        (Unread(TEXTS), {**SPEND, "top": 0}, ParameterError, "`top`"),
        (Unread(TEXTS), {**SPEND, "tokens": "letters"}, ParameterError, "`tokens`"),
    ],
)
def test_errors_come_before_the_charge(tmp_path, texts, options, error, message):
    ledger = Ledger.create(tmp_path / "budget.db", "notes", Budget(9, 1e-5), allow_seeded=True)
    model = fitted(ledger=ledger)
    with pytest.raises(error, match=message):
        model.describe_terms(texts, **options)
    assert len(ledger.history()) == 1
    assert model.terms_ is None


def test_what_cannot_be_added_is_refused_before_the_charge():
    model = fitted(epsilon=None, delta=0.0, rho=0.1)
    with pytest.raises(ParameterError, match="delta"):
        model.describe_terms(Unread(TEXTS), **SPEND)
    model.describe_terms(TEXTS, ["cat", "bank"], rho=0.1)
    assert model.privacy_.budget == Budget(rho=0.2)


def test_texts_that_are_none_are_empty():
    model = fitted()
    mixed = [None, float("nan"), 5, *TEXTS[3:]]
    check_topics(model.describe_terms(mixed, **SPEND))
    assert model.terms_.sizes.sum() == pytest.approx(N, abs=6 * 2 * model.terms_.std)


@pytest.mark.parametrize("kind", [np.array, pd.Series, pa.array], ids=["numpy", "pandas", "arrow"])
def test_columns_of_texts(kind):
    as_list, as_column = fitted(), fitted()
    assert (
        as_list.describe_terms(TEXTS, **SPEND).rows() == as_column.describe_terms(kind(TEXTS), **SPEND).rows()
    )


def test_rows_may_be_given_again():
    model, other = fitted(), fitted()
    del other._table
    with pytest.raises(ParameterError, match="`X` must be given"):
        other.describe_terms(TEXTS, **SPEND)
    assert model.describe_terms(TEXTS, **SPEND).rows() == other.describe_terms(TEXTS, X=ROWS, **SPEND).rows()


def frame(rows_each):
    table = pd.DataFrame(ROWS, columns=list("abc"))
    return table.assign(who=[f"p{i // rows_each}" for i in range(N)])


def test_people_count_once_whatever_their_rows():
    options = {"bounds": dict.fromkeys("abc", (-0.3, 1.3)), "unit": "who", "max_rows_per_unit": 2}
    model = fitted(X=frame(5), **options)
    texts = ["planted " + text for text in TEXTS]
    terms = model.describe_terms(texts, epsilon=20, delta=1e-6)
    assert terms.sizes.sum() == pytest.approx(2 * N / 5, rel=0.1)  # in two clusters of three at most
    assert terms.counts[:, terms.terms.index("planted")].sum() <= 2 * N / 5 * 1.1
    assert model.privacy_.unit.column == "who"


def test_a_person_of_many_rows_is_not_found_alone():
    options = {"bounds": dict.fromkeys("abc", (-0.3, 1.3)), "unit": "who"}
    table = frame(1)
    table.loc[:999, "who"] = "one"
    texts = ["planted " + text if i < 1000 else text for i, text in enumerate(TEXTS)]
    terms = fitted(X=table, **options).describe_terms(texts, **SPEND)
    assert "planted" not in terms.terms


def test_rows_that_do_not_count_for_the_fit_do_not_count():
    rows = np.vstack([ROWS, np.full((2000, 3), 9.0)])
    texts = [*TEXTS, *["planted"] * 2000]
    model = fitted(X=rows, bounds=(-0.5, 1.5), outside="drop")
    assert "planted" not in model.describe_terms(texts, **SPEND).terms


def test_release_file_keeps_the_terms(tmp_path):
    model = fitted()
    model.describe_terms(TEXTS, **SPEND)
    path = model.release_.save(tmp_path / "release.json")
    again = Release.load(path)
    assert again.terms.rows() == model.terms_.rows()
    assert again.privacy == model.privacy_
    assert "terms" not in fitted().release_.to_dict()


def test_terms_of_other_clusters_are_refused(tmp_path):
    model = fitted()
    model.describe_terms(TEXTS, ["cat"], epsilon=1)
    content = model.release_.to_dict()
    content["terms"]["counts"] |= {"shape": [1, 1], "values": [1]}
    content["terms"]["sizes"] |= {"shape": [1], "values": [1]}
    content["sha256"] = Release.checksum(_Content(content))
    (tmp_path / "bad.json").write_text(json.dumps(content))
    with pytest.raises(ReleaseError, match="another number of clusters"):
        Release.load(tmp_path / "bad.json")


class _Content:
    """Stands in for a release with this content."""

    def __init__(self, content):
        self.content = dict(content)

    def to_dict(self):
        return self.content


def test_a_new_fit_forgets_terms_and_their_cost():
    model = fitted()
    model.describe_terms(TEXTS, **SPEND)
    model.fit(ROWS)
    assert model.terms_ is None
    assert model.privacy_.budget == Budget(1, 1e-6)
    assert model.release_.terms is None


def test_nothing_found_is_said():
    model = fitted()
    with pytest.warns(NoiseWarning, match="no term was found"):
        terms = model.describe_terms([None] * N, **SPEND)
    assert terms.terms == ()
    assert list(terms) == [[], [], []]


def test_the_number_of_terms_is_the_best_of_those_allowed():
    class Record:
        noise_std = 5.0

    def noisy(*values):
        return Noisy(np.array([*values, 0, 0, 0, 0, 0]), Record())

    noise = np.sqrt(np.arange(1, 9) + 1.0)
    assert best_max_terms(noisy(0, 900, 0, 0), noise) == (1, 1.0)
    number, kept = best_max_terms(noisy(0, 0, 0, 0, 900), noise)
    assert (number, kept) == (4, 1.0)
    number, kept = best_max_terms(noisy(0, 900, 0, 0, 0, 0, 0, 100), noise)
    assert number == 1
    assert kept == pytest.approx(1000 / 1600)
    assert best_max_terms(noisy(3, -4, 7, 9), noise) == (1, 1.0)


def test_the_plan_declares_what_is_asked():
    plan = TermsAsked.of("private", 8, 10).plan(3)
    assert [step.threshold for step in plan.steps] == [True, False, False]
    assert plan.steps[-1].sensitivity.l2_squared == 11
    assert len(TermsAsked.of(["cat"], 8, 10).plan(1).steps) == 2
