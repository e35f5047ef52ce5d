"""How texts are split: by a rule of one text alone."""

import pytest

from sfumato.domain.words import LONGEST, Words, is_term, words_by
from sfumato.errors import ParameterError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The CAT sat.", ["the", "cat", "sat"]),
        ("don't over_think a-b c3po", ["don", "over", "think", "c3po"]),
        ("Größe Ελλάδα 東京都", ["größe", "ελλάδα", "東京都"]),
        ("", []),
        ("a b c . !", []),
        ("\ud800bad", ["bad"]),
    ],
)
def test_words_are_runs_of_letters_and_digits(text, words):
    assert Words()(text) == words


def test_pairs_follow_one_another_without_stop_words():
    assert words_by("pairs", ["of"])("Bank of England") == ["bank", "england", "bank england"]


def test_english_stop_words_are_left_out_by_name():
    assert words_by("words", "english")("the cat and the hat") == ["cat", "hat"]
    assert words_by("words", None)("the cat") == ["the", "cat"]


def test_a_callable_is_taken_as_it_is():
    assert words_by(str.split, "english")("The Cat") == ["The", "Cat"]


@pytest.mark.parametrize(
    ("tokens", "stop_words", "message"),
    [
        ("letters", None, "`tokens` must be"),
        (3, None, "`tokens` must be"),
        ("words", "german", "`stop_words` must be"),
        ("words", [1], "`stop_words` must be"),
        (lambda text: 1 / 0, None, "failed on a sample"),
        (lambda text: [1], None, "must give texts"),
        (len, None, "failed on a sample"),
    ],
)
def test_other_rules_are_refused(tokens, stop_words, message):
    with pytest.raises(ParameterError, match=message):
        words_by(tokens, stop_words)


@pytest.mark.parametrize(
    ("term", "may"),
    [
        ("cat", True),
        ("", False),
        ("x" * (LONGEST + 1), False),
        ("a\nb", False),
        ("\ud800", False),
        (3, False),
    ],
)
def test_what_may_be_published(term, may):
    assert is_term(term) == may
