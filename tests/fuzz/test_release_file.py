"""Damaged and forged release files: refused, or read as a release that can be used."""

import hashlib
import json
import tempfile
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from tests.fuzz.cases import attempt, fuzz
from tests.fuzz.mutations import damaged_bytes, damaged_content

import sfumato
from sfumato import Ball, Release, report

SMALL = {"random_state": 0, "bounds": (-1, 1)}
COLUMNS = {"age": (-1, 1), "day": (date(2026, 1, 1), date(2026, 7, 1)), "ward": ["icu", "er"]}


@cache
def contents():
    """The content of a release of every type of model, bounds, budget and table."""
    rng = np.random.default_rng(0)
    rows = np.clip(rng.choice([-0.6, 0.1, 0.6], (400, 1)) + rng.normal(scale=0.08, size=(400, 2)), -1, 1)
    line = rows[:, :1]
    days = np.datetime64("2026-01-01") + rng.integers(180, size=400)
    stays = pa.table({"age": line[:, 0], "day": days, "ward": ["icu", "er"] * 200, "who": [*range(200)] * 2})
    people = {"unit": "who", "max_rows_per_unit": 2, "bounds": COLUMNS, "random_state": 0}
    tree = sfumato.DensityTree(0.1, epsilon=20, **SMALL)
    spans = {"radius": 0.5, "min_samples": 90, "epsilon": 20}
    fitted = [
        sfumato.GridKMeans(3, max_cells=16, **SMALL).fit(rows),
        sfumato.GridKMeans(2, max_cells=9, rho=1e-8, **SMALL).fit(line),
        sfumato.DPM(**SMALL | {"bounds": Ball(2.0)}).fit(rows),
        sfumato.LloydKMeans(3, epsilon=2, delta=1e-6, **SMALL).fit(rows),
        sfumato.LloydKMeans(2, n_iter=1, **people).fit(stays),
        sfumato.DPMoG(3, epsilon=4, **SMALL).fit(rows),
        sfumato.MorseClustering(sfumato.DPMoG(3), epsilon=4, **SMALL).fit(rows),
        sfumato.MorseClustering(sfumato.DPMoG(4), labels="basin", epsilon=4, **SMALL).fit(rows),
        sfumato.DPDBSCAN(**spans, **SMALL).fit(rows),
        sfumato.DPDBSCAN(**spans | {"radius": 0.05}, **SMALL).fit(rows),
        tree.fit(rows),
        sfumato.SourceTargetClustering(3, t=20, **SMALL).fit(rows, rows[:50]),
    ]
    return [model.release_.to_dict() for model in fitted]


def signed(content):
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return content | {"sha256": hashlib.sha256(canonical.encode()).hexdigest()}


def read(text, *, with_report=False):
    """Load a file and do with the release all that a reader may do."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "release.json")
        path.write_bytes(text)
        release = attempt(Release.load, path)
        if release is not None:
            use(release, path, with_report)
    return release


def use(release, path, with_report):
    model = release.model
    rows = np.linspace(-2, 2, 5 * model.n_features).reshape(5, -1)
    labels = model.predict(rows)
    assert labels.shape == (5,)
    assert labels.min() >= -1
    if release.reading is None:
        assert (release.predict(rows) == np.where(release.domain.admits(rows), labels, -1)).all()
    assert str(release.privacy)
    model.attributes()
    again = Release.load(release.save(path))
    assert again.to_dict() == release.to_dict()
    for write in (release.to_geojson, release.to_geoparquet, release.to_csv):
        attempt(write, path)
    if with_report:
        assert report.render(release)


files = st.builds(lambda i: contents()[i], st.integers(0, 11))
texts = files.map(lambda content: json.dumps(signed(content), indent=1).encode())


@fuzz(few=60, share=0.13, text=texts.flatmap(damaged_bytes))
def test_damaged_bytes(shard, text):
    read(text)


@fuzz(few=60, share=0.195, content=files.flatmap(damaged_content))
def test_forged_content(shard, content):
    read(json.dumps(signed(content)).encode())


@fuzz(few=3, share=0.008, content=files.flatmap(damaged_content))
def test_reports_on_forged_content(shard, content):
    read(json.dumps(signed(content)).encode(), with_report=True)


def test_all_are_read():
    for content in contents():
        assert read(json.dumps(signed(content)).encode()) is not None
