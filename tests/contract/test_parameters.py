"""Parameters are described where people look for them, once each: in `help`, signatures and notebooks."""

import inspect
import pydoc
import re
import warnings

import pytest
from tests.conftest import all_estimators

from sfumato import SourceTargetClustering, estimate_bounds, suggest_max_rows

TAKERS = [*all_estimators(), SourceTargetClustering, estimate_bounds, suggest_max_rows]
every_taker = pytest.mark.parametrize("taker", TAKERS, ids=lambda taker: taker.__name__)


def described(docstring):
    """Names that the section of parameters describes, in order."""
    section = re.search(r"Parameters\n-+\n(.*?)(\n\n|\Z)", inspect.cleandoc(docstring), re.DOTALL)[1]
    heads = re.findall(r"(?m)^(\w[\w, ]*?) :|^(\w+)$", section)
    return [name for head in heads for name in (head[0] or head[1]).split(", ")]


@every_taker
def test_every_parameter_is_described_once(taker):
    assert sorted(described(taker.__doc__)) == sorted(inspect.signature(taker).parameters)


@every_taker
def test_help_shows_every_parameter_once(taker):
    shown = pydoc.plain(pydoc.render_doc(taker))
    for name in inspect.signature(taker).parameters:
        entries = re.findall(rf"(?m)^(?: \|  |    )(?:\w+, )*{name}(?:, \w+)*(?: :|$)", shown)
        assert len(entries) == 1, name


@every_taker
def test_shared_parameters_have_the_same_text_everywhere(taker):
    assert "Where the budget is charged before any row is read." in " ".join(taker.__doc__.split())


@pytest.mark.parametrize("method", TAKERS[:-2], ids=lambda method: method.__name__)
def test_notebooks_show_an_estimator_without_a_warning(method):
    model = method()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = model._repr_html_()
        bundle = model._repr_mimebundle_()
    assert method.__name__ in shown
    assert bundle["text/html"]
    assert method.__name__ in bundle["text/plain"]
