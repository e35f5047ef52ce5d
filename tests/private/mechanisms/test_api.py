import inspect

import pytest

from sfumato.private import mechanisms


def test_all_names_are_exactly_the_public_ones():
    public = [
        name
        for name in dir(mechanisms)
        if not name.startswith("_") and not inspect.ismodule(getattr(mechanisms, name))
    ]
    assert sorted(mechanisms.__all__) == sorted(public)


@pytest.mark.parametrize("name", mechanisms.__all__)
def test_every_mechanism_states_its_privacy(name):
    doc = inspect.getdoc(getattr(mechanisms, name))
    assert "\nPrivacy\n-------\n" in doc
    assert "Examples\n--------\n" in doc
