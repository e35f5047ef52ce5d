"""Files of a joint fit come back as they were, and a damaged or hostile one is refused."""

import datetime
import json
import stat
from fractions import Fraction

import numpy as np
import pytest

from sfumato import DPM, Ball, DPMoG, GridKMeans, MorseClustering, Sphere, holders
from sfumato.errors import ReleaseError
from sfumato.holders.declaration import declared, read
from sfumato.release import write_sealed

from .conftest import joint, public

ROWS = np.random.default_rng(0).uniform(-1, 1, (300, 2))
TABLES = {"north": ROWS[:100], "south": ROWS[100:]}
METHOD = GridKMeans(2, epsilon=1.0, bounds=(-1, 1), random_state=0)

pytestmark = pytest.mark.filterwarnings("ignore::sfumato.errors.NoiseWarning")


@pytest.fixture
def transcript():
    return holders.declare(METHOD, [*TABLES], columns=2)


@pytest.fixture
def state(transcript):
    return holders.fold(transcript, TABLES["north"], "north")


def test_a_fit_through_files(tmp_path):
    path, own = tmp_path / "joint.json", {name: tmp_path / f"{name}.json" for name in TABLES}
    holders.declare(METHOD, [*TABLES], columns=2).save(path)
    while not holders.Transcript.load(path).is_complete:
        for name, rows in TABLES.items():
            last = holders.State.load(own[name]) if own[name].exists() else None
            holders.fold(holders.Transcript.load(path), rows, name, last=last).save(own[name])
        states = map(holders.State.load, own.values())
        holders.combine(holders.Transcript.load(path), states).save(path)
    found = holders.release(holders.Transcript.load(path))
    assert public(found) == public(METHOD.fit(ROWS).release_)
    assert public(found) == public(holders.release(joint(METHOD, TABLES, 2)))


def test_only_its_owner_reads_a_state(state, tmp_path):
    assert stat.S_IMODE(state.save(tmp_path / "north.json").stat().st_mode) == 0o600


def test_a_state_prints_no_values(state):
    assert "values" not in repr(state)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        bool,
        3,
        0.1,
        "private",
        (0, 1),
        [1, "a"],
        Fraction(1, 3),
        datetime.date(2026, 1, 2),
        datetime.datetime(2026, 1, 2, 3, 4),
        {"age": (0, 120, "years"), "job": ["a", "b"], "hour": {"cycle": (0, 24)}, "ill": bool},
        Ball(2.0, (0.0, 1.0)),
        Sphere(),
        {"tuple": [1]},
        {"method": "DPM"},
    ],
)
def test_parameters_come_back_with_their_types(value):
    found = read(json.loads(json.dumps(declared(value))))
    assert found == value
    assert type(found) is type(value)


def test_arrays_and_methods_come_back():
    points = np.array([[0.5, 1.0]])
    assert np.array_equal(read(json.loads(json.dumps(declared(points)))), points)
    method = MorseClustering(DPMoG(3, bounds=(0, 1)), n_clusters=2, rho=0.5, random_state=3)
    found = read(json.loads(json.dumps(declared(method))))
    assert repr(found) == repr(method.set_params(random_state=None))


@pytest.mark.parametrize(
    "hostile",
    [
        {"method": "Ledger", "parameters": {}},
        {"method": "PrivateClusterer", "parameters": {}},
        {"method": "estimate_bounds", "parameters": {}},
        {"method": "DPM", "parameters": {"ledger": "x"}},
        {"method": "DPM", "parameters": {"random_state": 1}},
        {"method": "DPM", "parameters": {"__class__": 1}},
        {"domain": "Unit", "parts": {}},
        {"type": "int"},
        {"what": 1},
    ],
)
def test_nothing_else_is_made(hostile):
    with pytest.raises((ReleaseError, KeyError)):
        read(hostile)


@pytest.mark.parametrize("kind", ["transcript", "state"])
def test_damaged_files(kind, transcript, state, tmp_path):
    made, cls = {"transcript": (transcript, holders.Transcript), "state": (state, holders.State)}[kind]
    path = made.save(tmp_path / "file.json")
    text = path.read_text()
    content = json.loads(text)
    content.pop("sha256")
    for name in [*content]:
        fewer = {key: value for key, value in content.items() if key != name}
        write_sealed(path, fewer)
        if name == "pads":
            cls.load(path)
            continue
        with pytest.raises(ReleaseError):
            cls.load(path)
    for bad in (text[:-20], text.replace("north", "west", 1), "[]", "{}", "\x80"):
        path.write_text(bad)
        with pytest.raises(ReleaseError):
            cls.load(path)
    write_sealed(path, content)
    with pytest.raises(ReleaseError, match="not a"):
        {holders.State: holders.Transcript, holders.Transcript: holders.State}[cls].load(path)


@pytest.mark.parametrize(
    "values",
    [
        {"type": "array", "dtype": "object", "shape": [1], "values": ["os.system('true')"]},
        {"type": "array", "dtype": "float64", "shape": [1], "values": [1.0]},
        {"type": "array", "dtype": "int64", "shape": [2**40], "values": [1]},
        {"type": "array", "dtype": "int64", "shape": [1], "values": [2**70]},
        {"type": "Domain"},
        "cos\nsystem\n(S'true'\ntR.",
    ],
)
def test_hostile_states(values, state, tmp_path):
    path = state.save(tmp_path / "north.json")
    content = json.loads(path.read_text()) | {"values": values}
    content.pop("sha256")
    write_sealed(path, content)
    with pytest.raises(ReleaseError):
        holders.State.load(path)


def test_another_version(transcript, tmp_path):
    path = transcript.save(tmp_path / "joint.json")
    content = json.loads(path.read_text())
    content.pop("sha256")
    content["declaration"]["library"] = "0.0.1"
    write_sealed(path, content)
    with pytest.raises(ReleaseError, match=r"started with sfumato 0\.0\.1"):
        holders.Transcript.load(path)


def test_the_same_declaration_twice_is_two_fits():
    one, other = (holders.declare(DPM(bounds=(-1, 1)), [*TABLES], columns=2) for _ in range(2))
    assert one.fit != other.fit
