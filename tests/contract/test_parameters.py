"""Parameters: bad ones are refused before anything is charged, and each is described once."""

import inspect
import pydoc
import re
import warnings

import numpy as np
import pytest
from tests.conftest import all_estimators
from tests.contract.test_bad_input import SECRET, assert_harmless

from sfumato import (
    Ball,
    Budget,
    Ledger,
    SourceTargetClustering,
    estimate_bounds,
    estimate_levels,
    suggest_max_rows,
)
from sfumato.errors import ParameterError

TAKERS = [*all_estimators(), SourceTargetClustering, estimate_bounds, estimate_levels, suggest_max_rows]
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


@pytest.mark.parametrize("method", TAKERS[:-3], ids=lambda method: method.__name__)
def test_notebooks_show_an_estimator_without_a_warning(method):
    model = method()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = model._repr_html_()
        bundle = model._repr_mimebundle_()
    assert method.__name__ in shown
    assert bundle["text/html"]
    assert method.__name__ in bundle["text/plain"]


BAD_PARAMETERS = [
    ({"bounds": None}, "`bounds` must be given"),
    ({"bounds": (1, 0)}, "low < high"),
    ({"bounds": (0, [1, 0])}, "low < high"),
    ({"bounds": (0, np.nan)}, "must be finite"),
    ({"bounds": (-np.inf, 1)}, "must be finite"),
    ({"bounds": (0, [1, 1, 1])}, "2 numbers"),
    ({"bounds": "wide"}, "pair"),
    ({"bounds": Ball(-1)}, "radius"),
    ({"epsilon": 0}, "epsilon"),
    ({"epsilon": -1.0}, "epsilon"),
    ({"epsilon": np.inf}, "epsilon"),
    ({"epsilon": np.nan}, "epsilon"),
    ({"epsilon": "one"}, "epsilon"),
    ({"epsilon": True}, "epsilon"),
    ({"epsilon": None}, "epsilon"),
    ({"epsilon": "1e-30"}, "budget must be larger"),
    ({"delta": -1e-9}, "delta"),
    ({"delta": 1}, "delta"),
    ({"delta": 2.0}, "delta"),
    ({"delta": np.nan}, "delta"),
    ({"rho": 0}, "rho"),
    ({"rho": -1}, "rho"),
    ({"rho": np.inf}, "rho"),
    ({"rho": 0.1, "epsilon": 0.5}, "`rho`, or `epsilon`"),
    ({"rho": 0.1, "epsilon": 1}, "`rho`, or `epsilon`"),
    ({"rho": 0.1, "epsilon": 1.0}, "`rho`, or `epsilon`"),
    ({"rho": 0.1, "delta": 1e-6}, "`rho`, or `epsilon`"),
    ({"rho": 0.1, "delta": np.ones(2)}, "delta"),
    ({"rho": 0.1, "epsilon": np.ones(2)}, "`rho`, or `epsilon`"),
    ({"n_clusters": 0}, "n_clusters"),
    ({"n_clusters": -3}, "n_clusters"),
    ({"n_clusters": 2.0}, "n_clusters"),
    ({"n_clusters": True}, "n_clusters"),
    ({"n_clusters": "3"}, "n_clusters"),
    ({"n_clusters": 10**9}, "n_clusters"),
    ({"random_state": -1}, "random_state"),
    ({"random_state": 1.5}, "random_state"),
    ({"random_state": True}, "random_state"),
    ({"random_state": "x"}, "random_state"),
    ({"unit": "person"}, "`unit`"),
    ({"max_rows_per_unit": 3}, "max_rows_per_unit"),
    ({"max_rows_per_unit": 0}, "max_rows_per_unit"),
]


@pytest.mark.usefixtures("quick")
def test_bad_parameters(estimator_class, make, tmp_path):
    """Nothing that can be refused without reading rows is refused after the charge."""
    ledger = Ledger.create(tmp_path / "ledger.db", "people", Budget(1))
    known = inspect.signature(estimator_class).parameters.keys()
    for parameters, word in BAD_PARAMETERS:
        if not parameters.keys() <= known:
            continue
        with pytest.raises(ParameterError) as error:
            make(ledger=ledger, **parameters).fit(np.full((5, 2), SECRET))
        assert word in str(error.value), parameters
        assert_harmless(error)
    assert not ledger.spent()
    assert ledger.history() == []
