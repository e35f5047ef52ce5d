"""Pictures take most of the time of a report: only tests that look at them draw them."""

import pytest

from sfumato.report import markup


@pytest.fixture
def drawn():
    """Let a test ask for real pictures."""


@pytest.fixture(autouse=True)
def blank_pictures(request, monkeypatch):
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(markup, "_svg", lambda *_: ("0 0 1 1", "</svg>"))
