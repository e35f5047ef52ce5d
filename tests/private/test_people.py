"""The cap: a function of each person's rows alone, whatever the order, the files and the types."""

import stat
import struct
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path

import numba
import numpy as np
import pyarrow as pa
import pytest
from tests.contract.test_aggregates import (
    CASES,
    EXAMPLES,
    largest,
    newcomers,
    tables,
    vector_of,
    widest_person,
)
from tests.worlds import rarely

from sfumato.domain import Domain
from sfumato.errors import DataError
from sfumato.private import people
from sfumato.private.engines.memory import MemoryEngine
from sfumato.private.people import cap_rows, capped_blocks, capped_rows, contributions

LIMITS = [1, 2, 7, 1000]
MASK = 2**64 - 1


def mix(state, word):
    bits = ((state ^ word) + 0x9E3779B97F4A7C15) & MASK
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB & MASK
    return bits ^ (bits >> 31)


def hash_of(name, row, copy):
    state = 0
    for byte in name.encode():
        state = mix(state, byte)
    for value in row:
        state = mix(state, struct.unpack("<Q", struct.pack("<d", value))[0])
    return mix(state, copy)


def capped_by_hand(ids, rows, max_rows):
    """The slow twin: person by person, in Python's integers."""
    of_person = defaultdict(Counter)
    for name, row in zip(ids, rows.tolist(), strict=True):
        of_person[name][tuple(value + 0.0 for value in row)] += 1
    kept = Counter()
    for name, own in of_person.items():
        ranked = [(hash_of(name, row, copy), row, copy) for row in own for copy in range(own[row])]
        kept.update(row for _, row, _ in sorted(ranked)[:max_rows])
    return kept


def bag(rows):
    """Rows as a multiset of bits, so that -0.0 and 0.0 differ."""
    return Counter(row.tobytes() for row in np.ascontiguousarray(rows))


def bag_of(counter):
    return Counter({np.array(row).tobytes(): n for row, n in counter.items()})


def capped(ids, rows, max_rows):
    return bag(cap_rows(pa.array(ids, pa.string()), rows, max_rows))


def worlds():
    """Tables of (persons, rows)."""
    rng = np.random.default_rng(0)
    few = rng.integers(0, 3, size=(300, 2)).astype(np.float64)
    zeros = np.array([0.0, -0.0, 1.0])[rng.integers(3, size=(60, 3))]
    alike = ["", " ", "0", "00", "1", "01", "1.0", "a", "A", "a ", "ä", "a\u0308", "a\x00", "\x00a", "a\x00b"]
    huge = np.array([5e-324, -5e-324, 1e308, -1e308, 1.0, np.nextafter(1.0, 2.0)])
    return {
        "empty": ([], np.empty((0, 2))),
        "one": (["p"], few[:1]),
        "random": (rng.integers(20, size=200).astype(str).tolist(), rng.normal(size=(200, 2))),
        "skewed": (np.minimum(rng.geometric(0.05, size=300), 40).astype(str).tolist(), few),
        "shared": (["a", "b", "c"] * 20, np.repeat(few[:20], 3, axis=0)),
        "owner of all": (["me"] * 99 + ["you"], few[:100]),
        "all equal": (rng.integers(4, size=80).astype(str).tolist(), np.ones((80, 1))),
        "zeros": (rng.integers(3, size=60).astype(str).tolist(), zeros),
        "alike": (alike * 4, np.repeat(few[:4], len(alike), axis=0)),
        "extremes": (list("xy") * 30, huge[rng.integers(len(huge), size=(60, 4))]),
    }


every_world = pytest.mark.parametrize("world", worlds().values(), ids=worlds().keys())


@pytest.fixture
def without_compiler(monkeypatch):
    for name, kernel in vars(people).copy().items():
        if isinstance(kernel, numba.core.registry.CPUDispatcher):
            monkeypatch.setattr(people, name, kernel.py_func)
    with np.errstate(all="ignore"):
        yield


@every_world
@pytest.mark.parametrize("max_rows", LIMITS)
def test_the_twin_agrees(world, max_rows):
    assert capped(*world, max_rows) == bag_of(capped_by_hand(*world, max_rows))


@every_world
def test_kernels_without_the_compiler(world, without_compiler):
    assert capped(*world, 2) == bag_of(capped_by_hand(*world, 2))


@every_world
@pytest.mark.parametrize("max_rows", LIMITS)
def test_a_person_adds_or_removes_own_kept_rows_and_nothing_else(world, max_rows):
    ids, rows = np.array(world[0], dtype=object), world[1]
    whole = capped(ids, rows, max_rows)
    for person in set(world[0]):
        mine = ids == person
        own, rest = (capped(ids[which], rows[which], max_rows) for which in (mine, ~mine))
        assert whole == own + rest
        assert own.total() == min(max_rows, mine.sum())
        assert own <= bag(rows[mine] + 0.0)


def test_a_person_who_joins_with_rows_of_others_moves_none_of_theirs():
    ids, rows = worlds()["skewed"]
    before = capped(ids, rows, 3)
    for newcomer in ["x", "00", "7 ", "-1"]:
        after = capped([*ids, *[newcomer] * len(ids)], np.concatenate([rows, rows]), 3)
        assert before <= after
        assert (after - before).total() == 3


def test_rows_come_in_the_order_of_the_table_and_are_copies():
    rows = np.arange(40.0).reshape(20, 2)
    before, ids = rows.copy(), pa.array([1, 2] * 10)
    kept = cap_rows(ids, rows, 4)
    assert (np.diff(kept[:, 0]) > 0).all()
    kept[:] = -1
    assert (rows == before).all()
    assert (cap_rows(ids, np.asfortranarray(rows), 4) == cap_rows(ids, before, 4)).all()


@every_world
def test_order_does_not_matter(world):
    ids, rows = world
    rng, expected = np.random.default_rng(1), capped(ids, rows, 2)
    for _ in range(5):
        order = rng.permutation(len(rows))
        assert capped([ids[i] for i in order], rows[order], 2) == expected


def id_types(numbers):
    """The same persons, spelled the same, in columns of many types."""
    whole, text = pa.array(numbers), pa.array([str(n) for n in numbers])
    doubled = pa.concat_arrays([text.dictionary_encode().dictionary] * 2)  # holds every person twice
    half = len(doubled) // 2
    indices = text.dictionary_encode().indices.to_numpy() + half * (np.arange(len(numbers)) % 2)
    strange = pa.concat_arrays([pa.array(["nobody", None]), doubled])
    return {
        **{str(t): whole.cast(t) for t in (pa.int16(), pa.int32(), pa.uint64(), pa.decimal128(20, 0))},
        **{str(t): text.cast(t) for t in (pa.string(), pa.large_string(), pa.string_view(), pa.binary())},
        "dictionary": text.dictionary_encode(),
        "dictionary of numbers": whole.dictionary_encode(),
        "small dictionary": text.dictionary_encode().cast(pa.dictionary(pa.int16(), pa.string())),
        "dictionary with doubles": pa.DictionaryArray.from_arrays(pa.array(indices), doubled),
        "dictionary with nobody": pa.DictionaryArray.from_arrays(pa.array(indices + 2), strange),
        "slice": pa.concat_arrays([pa.array(["x", "yy"]), text, pa.array(["z"])]).slice(2, len(text)),
    }


def test_types_of_ids_do_not_matter():
    rng = np.random.default_rng(2)
    numbers, rows = rng.integers(0, 30, size=400), rng.integers(5, size=(400, 2)).astype(np.float64)
    expected = bag_of(capped_by_hand(numbers.astype(str).tolist(), rows, 3))
    for name, ids in id_types(numbers).items():
        assert bag(cap_rows(ids, rows, 3)) == expected, name
        assert bag(cap_rows(ids.slice(100, 50), rows[100:150], 1)) == bag_of(
            capped_by_hand(numbers[100:150].astype(str).tolist(), rows[100:150], 1)
        ), name
    columns = id_types(numbers).values()
    parts = [(ids.slice(25 * i, 25), rows[25 * i : 25 * i + 25]) for i, ids in enumerate(columns)]
    n_used = 25 * len(parts)
    expected = bag_of(capped_by_hand(numbers[:n_used].astype(str).tolist(), rows[:n_used], 3))
    assert bag(np.concatenate(list(capped_blocks(parts, 3)))) == expected


@pytest.mark.parametrize(
    "kind", [pa.timestamp("us"), pa.timestamp("ms", "Europe/Berlin"), pa.date32(), pa.float64()]
)
def test_other_types_group_by_value(kind):
    days = np.random.default_rng(3).integers(5, size=100)
    times = pa.array([datetime(2024, 10, 25) + timedelta(days=int(day)) for day in days])
    ids = pa.array(days / 7) if pa.types.is_floating(kind) else times.cast(pa.timestamp("us")).cast(kind)
    kept = cap_rows(ids, np.stack([days, np.arange(100)], axis=1).astype(np.float64), 3)
    assert Counter(kept[:, 0]) == dict.fromkeys(range(5), 3)


def test_missing_persons_are_refused_and_nothing_is_quoted():
    gap = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["Secret", None]))
    for ids in (pa.array(["Secret", None]), gap, pa.array([7, None]), pa.array(["Secret"])):
        with pytest.raises(DataError, match=r"`ids` must (name|have one entry)") as caught:
            cap_rows(ids, np.zeros((2, 1)), 1)
        assert "Secret" not in str(caught.value)
    for ids in (pa.array([[1], [2]]), pa.array([b"\xff\xfe", b"a"])):
        with pytest.raises(DataError, match="written as text"):
            cap_rows(ids, np.zeros((2, 1)), 1)


@pytest.mark.parametrize("start", [0, 1, 4])
def test_hashes_of_spellings_mind_slices(start):
    names = pa.array(["", "ä", "ada", "", "ben", "0"], pa.large_string())
    expected = [hash_of(name, (), 0) for name in names.to_pylist()]
    found = [mix(int(state), 0) for state in people.spelling_hashes(names.slice(start))]
    assert found == expected[start:]


def chi_square(counts, expected):
    return ((np.asarray(counts) - expected) ** 2 / expected).sum()


@pytest.mark.parametrize("prefix", ["", "person-", "0000000000000000"])
def test_copies_are_drawn_in_proportion(prefix):
    n_people = 10_000
    ids = pa.array([f"{prefix}{i}" for i in range(n_people) for _ in range(100)])
    rows = np.tile(np.array([[1.0]] * 99 + [[2.0]]), (n_people, 1))
    of_b = (cap_rows(ids, rows, 1) == 2).sum()
    assert abs(of_b - 100) < 5 * np.sqrt(99)


@pytest.mark.parametrize("step", [1.0, 2.0**-50, 1e300])
@pytest.mark.parametrize("max_rows", [1, 2, 5, 9])
def test_each_row_is_kept_equally_often(step, max_rows):
    n_people, own = 10_000, np.arange(10) * step + (1.0 if step < 1 else 0.0)
    ids = pa.array(np.repeat(np.arange(n_people), 10))
    rows = np.tile(own, n_people)[:, None]
    kept = cap_rows(ids, rows, max_rows)
    places = np.searchsorted(own, kept[:, 0]).reshape(n_people, max_rows)
    counts = np.bincount(places.ravel(), minlength=10)
    # Without replacement the counts vary less than independent ones: (10 - m) / 9 times.
    assert chi_square(counts, n_people * max_rows / 10) < 33.7 * (10 - max_rows) / 9  # 1 in 10,000, 9 degrees
    if max_rows == 2:
        pairs = Counter(map(tuple, places))
        assert chi_square([pairs[pair] for pair in combinations(range(10), 2)], n_people / 45) < 90.0


def test_the_person_is_in_the_hash():
    rows = np.tile(np.arange(50.0), 200)[:, None]
    kept = cap_rows(pa.array(np.repeat(np.arange(200), 50)), rows, 1)
    assert len(np.unique(kept)) > 40


@pytest.mark.parametrize("spilled", [False, True])
def test_persons_of_equal_hash_stay_apart(spilled, monkeypatch, without_compiler, tmp_path):
    monkeypatch.setattr(people, "_mix", lambda state, word: np.uint64(0))
    monkeypatch.setattr(people, "MEMORY_BYTES", 100 if spilled else 2**20)
    ids, rows = ["b", "a", "c"] * 20, np.repeat(np.arange(20.0)[::-1], 3)[:, None]
    pairs = [(pa.array(ids[i::2]), rows[i::2]) for i in range(2)]
    kept = np.concatenate(list(capped_blocks(pairs, 2, tmp_path)))
    assert Counter(kept.ravel()) == {0.0: 3, 1.0: 3}, "ties go by value"


def persons_for(example, max_rows):
    """Persons who own more rows than are kept, and one whose rows touch as many entries as possible."""
    pool, rng = newcomers(example), np.random.default_rng(max_rows)
    crowds = [pool[rng.integers(len(pool), size=4 * max_rows)] for _ in range(8)]
    copies = [np.repeat(row[None, :], 3 * max_rows, axis=0) for row in pool]
    return [*crowds, *copies, widest_person(example, pool, max_rows)]


def capped_vector(example, ids, rows, max_rows):
    return vector_of(example, cap_rows(pa.array(ids), rows, max_rows))


@pytest.mark.parametrize("example", CASES)
def test_a_person_moves_an_aggregate_by_the_cap_times_one_row_and_reaches_it(example):
    max_rows = 3
    declared = vars(example.aggregate.sensitivity.times(max_rows))
    reached, persons = dict.fromkeys(declared, 0), persons_for(example, max_rows)
    for name in ("empty", "uniform"):
        table = tables(example)[name]
        others = np.arange(len(table)) % 7  # most have rows that are not kept
        before = capped_vector(example, others, table, max_rows)
        changes = []
        for own in persons:
            ids = np.append(others, np.full(len(own), 7))
            changes.append(capped_vector(example, ids, np.concatenate([table, own]), max_rows) - before)
        for number, value in largest(changes).items():
            assert value <= declared[number], number
            reached[number] = max(reached[number], value)
    n_entries = vector_of(example, np.empty((0, example.n_features))).size
    for number in declared.keys() - example.loose.keys():
        most = min(declared[number], n_entries) if number == "coordinates" else declared[number]
        assert reached[number] >= most * (1 - example.slack), number


@pytest.mark.parametrize("max_rows", [1, 2, 7])
def test_a_count_changes_by_exactly_the_cap(max_rows):
    example = EXAMPLES["RowCount"][0]
    ids, rows = np.repeat([1, 2], 50), np.random.default_rng(4).normal(size=(100, 2))
    both, one = (capped_vector(example, ids[:n], rows[:n], max_rows) for n in (100, 50))
    assert both - one == max_rows


def split(ids, rows, n_parts, seed=0):
    rng = np.random.default_rng(seed)
    cuts = np.sort(rng.integers(0, len(rows) + 1, size=n_parts - 1))
    order = rng.permutation(len(rows))
    column = pa.array(np.array(ids, dtype=object)[order], pa.string())
    ends = [0, *cuts.tolist(), len(rows)]
    return [(column.slice(a, b - a), rows[order[a:b]]) for a, b in pairwise(ends)]


def together(blocks, n_features):
    return np.concatenate([np.empty((0, n_features)), *blocks])


@every_world
@pytest.mark.parametrize("memory", [100, 2**20, *rarely(0, 3000)])
def test_any_split_over_parts_and_files_gives_the_same_rows(world, memory, monkeypatch, tmp_path):
    monkeypatch.setattr(people, "MEMORY_BYTES", memory)
    for max_rows in (1, 3):
        expected = capped(*world, max_rows)
        for n_parts in (1, 9):
            pairs = iter(split(*world, n_parts, seed=n_parts))
            kept = together(capped_blocks(pairs, max_rows, tmp_path), world[1].shape[1])
            assert bag(kept) == expected
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_if_it_fits(tmp_path):
    ids, rows = worlds()["random"]
    nowhere = tmp_path / "missing"
    assert bag(together(capped_blocks(split(ids, rows, 5), 2, nowhere), 2)) == capped(ids, rows, 2)
    assert bag(capped_rows(split(ids, rows, 5), 2, 2, nowhere)) == capped(ids, rows, 2)


def many_people(n_rows=3000, n_people=900):
    rng = np.random.default_rng(5)
    owners = np.where(rng.random(n_rows) < 0.3, 0, rng.integers(n_people, size=n_rows))  # one has very many
    return owners.astype(str).tolist(), rng.integers(50, size=(n_rows, 2)).astype(np.float64)


def test_large_buckets_are_split_again_and_a_large_person_is_not(tmp_path, monkeypatch):
    monkeypatch.setattr(people, "MEMORY_BYTES", 3000)
    levels, spread = [], people._spread

    def recorded(parts, folder, level):
        levels.append(level)
        found = spread(parts, folder, level)
        assert len(found) <= people.N_BUCKETS
        return found

    monkeypatch.setattr(people, "_spread", recorded)
    ids, rows = many_people()
    assert bag(together(capped_blocks(split(ids, rows, 40), 2, tmp_path), 2)) == capped(ids, rows, 2)
    assert 1 in levels
    assert max(levels) <= 3


def test_the_folder_is_private_and_goes_when_the_iterator_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(people, "MEMORY_BYTES", 3000)
    blocks = capped_blocks(split(*many_people(2000), 10), 2, tmp_path)
    next(blocks)
    (folder,) = tmp_path.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert any(folder.iterdir())
    blocks.close()
    assert not list(tmp_path.iterdir())


class UnexpectedError(Exception):
    pass


@pytest.mark.parametrize("n_good", [0, 1, 5, 9])
@pytest.mark.parametrize("read", [capped_blocks, lambda *args: capped_rows(*args[:2], 2, args[2])])
def test_files_vanish_after_an_error_in_the_source(n_good, read, tmp_path, monkeypatch):
    monkeypatch.setattr(people, "MEMORY_BYTES", 3000)
    seen = []

    def failing():
        yield from split(*many_people(2000), 10)[:n_good]
        seen.extend(tmp_path.iterdir())
        raise UnexpectedError

    with pytest.raises(UnexpectedError):
        list(read(failing(), 2, tmp_path))
    assert len(seen) == (n_good > 1)
    assert not list(tmp_path.iterdir())


def test_files_vanish_after_an_error_in_a_bucket(tmp_path, monkeypatch):
    monkeypatch.setattr(people, "MEMORY_BYTES", 3000)
    cap, calls = people._cap, []

    def failing(*arguments):
        calls.append(list(tmp_path.iterdir()))
        if len(calls) > 20:
            raise UnexpectedError
        return cap(*arguments)

    monkeypatch.setattr(people, "_cap", failing)
    with pytest.raises(UnexpectedError):
        capped_rows(split(*many_people(2000), 10), 2, 2, tmp_path)
    assert all(calls)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("memory", [3000, 2**20])
def test_kept_rows_can_be_read_again(memory, tmp_path, monkeypatch):
    monkeypatch.setattr(people, "MEMORY_BYTES", memory)
    ids, rows = many_people()
    kept = capped_rows(split(ids, rows, 30), 2, 2, tmp_path)
    assert isinstance(kept, np.memmap) == (memory == 3000)
    for _ in range(2):
        assert bag(kept) == capped(ids, rows, 2)
    assert not list(tmp_path.iterdir()), "a file that others could open"
    domain, example = Domain.from_bounds((0, 50), 2), EXAMPLES["GroupedSums"][0]
    expected = MemoryEngine(cap_rows(pa.array(ids), rows, 2), domain).fold(example.aggregate)
    assert (MemoryEngine(kept, domain).fold(example.aggregate) == expected).all()


def test_a_mapped_file_is_closed_with_its_rows(tmp_path, monkeypatch):
    open_files = Path("/proc/self/fd")
    if not open_files.is_dir():
        pytest.skip("open files are counted by /proc")
    monkeypatch.setattr(people, "MEMORY_BYTES", 3000)

    def n_open():
        return len(list(open_files.iterdir()))

    before, most = n_open(), []
    pairs = split(*many_people(), 30)
    watched = (most.append(n_open()) or pair for pair in pairs)
    kept = capped_rows(watched, 2, 2, tmp_path)
    assert max(most) - before <= people.N_BUCKETS + 2
    del kept
    assert n_open() <= before


@pytest.mark.parametrize("block", [1, 10, 2**17])
def test_contributions(block, monkeypatch):
    monkeypatch.setattr(people, "N_MERGED", block)
    for ids, rows in [*worlds().values(), many_people(5000)]:
        for n_parts in (1, 3, 40):
            found = contributions(part for part, _ in split(ids, rows, n_parts))
            assert found.dtype == np.int64
            assert sorted(found) == sorted(Counter(ids).values())
    assert contributions([]).tolist() == []


def test_contributions_of_any_type_leave_out_who_does_not_occur():
    numbers = np.random.default_rng(6).integers(0, 30, size=400)
    columns = id_types(numbers)
    for name, ids in columns.items():
        found = contributions([ids.slice(0, 10), ids.slice(10)])
        assert sorted(found) == sorted(Counter(numbers.tolist()).values()), name
        assert len(contributions([ids.slice(0, 1)])) == 1, name
    assert contributions(columns.values()).sum() == 400 * len(columns)
