"""Joint fits in one process: each holder sees the transcript and its own rows, and nothing else."""

from dataclasses import replace

import pytest

from sfumato import holders


def public(release):
    """All of a release but the time at which it was made."""
    return replace(release, created="").to_dict()


def parted(table, n_holders):
    """The rows of a table at several holders, of unequal sizes, one of them without any."""
    names = [f"holder{i}" for i in range(n_holders)]
    cuts = [0, 0, *(len(table) * i // (2 * n_holders) for i in range(1, n_holders - 1)), len(table)]
    take = table.iloc if hasattr(table, "iloc") else table
    return {name: take[cuts[i] : cuts[i + 1]] for i, name in enumerate(names)}


def joint(estimator, tables, columns=None, *, change=lambda state: state, **options):
    """Transcript of a joint fit."""
    transcript, states = holders.declare(estimator, [*tables], columns, **options), {}
    while not transcript.is_complete:
        for name, table in tables.items():
            states[name] = change(holders.fold(transcript, table, name, last=states.get(name)))
        transcript = holders.combine(transcript, reversed(states.values()))
    return transcript


@pytest.fixture
def same():
    """Check that a joint fit gives the release of a fit on all rows, to the last bit."""

    def check(estimator, table, n_holders, columns=None, **options):
        tables = parted(table, n_holders)
        found = holders.release(joint(estimator, tables, columns, **options))
        assert public(found) == public(estimator.fit(table).release_)

    return check
