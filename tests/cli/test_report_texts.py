from pathlib import Path

import pytest
from tests.report.mixed import release


@pytest.fixture
def made(call):
    return release().save("release.json")


@pytest.mark.usefixtures("made")
def test_title_and_labels(call):
    Path("texts.toml").write_text('[bounds]\nage = [0, 100]\n[labels]\nage = "Age at admission"\n')
    call("report", "release.json", "--title", "Kinds of stays", "--labels", "texts.toml")
    text = Path("report.html").read_text(encoding="utf-8")
    assert "<h1>Kinds of stays</h1>" in text
    assert "<title>Kinds of stays</title>" in text
    assert '<th scope="row">Age at admission</th>' in text


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age = 3", "must have a table [labels]"),
        ("[labels]\nlos = 'Days'", "got 'los'"),
        ("[labels]\nage = 3", "must be a text, got 3"),
        ("[labels", "must be a TOML file"),
    ],
)
def test_labels_that_cannot_be_used(call, content, message):
    Path("texts.toml").write_text(content)
    assert message in call("report", "release.json", "--labels", "texts.toml", code=2).stderr
    assert not Path("report.html").exists()
