"""Entries of the registry: complete, valid, from the release and answers alone."""

import json
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import yaml

from sfumato import (
    DPM,
    Ball,
    DensityTree,
    DPMoG,
    GridKMeans,
    LloydKMeans,
    Release,
    SourceTargetClustering,
    Sparse,
)
from sfumato.errors import ParameterError
from sfumato.registry import FIELDS, TO_FILL_IN, make_entry, problems, unfilled, write

pytestmark = pytest.mark.usefixtures("quick")

ANSWERS = {
    "basic": {
        "name": "Kinds of stays",
        "data_curators": ["City Hospital", "Ministry of Health"],
        "intended_use": "Planning of wards",
        "data_product_region": "Utopia",
    },
    "deployment_model": {"actors": "The hospital, and everybody", "data_source_type": "Static"},
    "implementation": {
        "preprocessing_and_hyperparameter_tuning": "Bounds are public knowledge.",
        "justification": "A committee chose epsilon.",
    },
    "administrative": {"sources": "hospital.example/stays", "registry_authors": "A. Clerk"},
}
ASKED = {
    "url_slug",
    "basic.name",
    "basic.data_curators",
    "basic.intended_use",
    "basic.data_product_region",
    "deployment_model.actors",
    "deployment_model.data_source_type",
    "implementation.preprocessing_and_hyperparameter_tuning",
    "implementation.justification",
    "administrative.sources",
    "administrative.registry_authors",
}
KINDS = {
    "Pure DP": {"epsilon": 1 / 3},
    "Approximate DP": {"epsilon": 1, "delta": 1e-6},
    "Zero-concentrated DP": {"rho": 0.1},
}
METHODS = {
    "tree": DensityTree(epsilon=5, bounds=(-1, 1)),
    "grid": GridKMeans(3, max_cells=25, epsilon=5, bounds=(-1, 1)),
    "dpm": DPM(3, epsilon=5, bounds=(-1, 1)),
    "mixture": DPMoG(3, epsilon=5, bounds=(-1, 1)),
    "ball": LloydKMeans(3, epsilon=5, bounds=Ball(1.5)),
}


def released(rows, **parameters):
    return LloydKMeans(3, **({"bounds": (-1, 1)} | parameters)).fit(rows).release_


@pytest.fixture(scope="module")
def stays():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.normal(60, 10, 400),
            "ward": rng.choice(["icu", "er"], 400),
            "triage": rng.choice(["green", "red"], 400),
            "smoker": rng.random(400) < 0.5,
            "readmitted": rng.choice(["no", "yes"], 400),
            "patient": [f"P-{number % 150}" for number in range(400)],
        }
    )


def section(entry, name):
    part, _, field = name.partition(".")
    return entry["deployment"][part][field]


@pytest.mark.parametrize("name", METHODS)
def test_every_method(rows, name, tmp_path):
    release = METHODS[name].fit(rows).release_
    loaded = Release.load(release.save(tmp_path / "release.json"))
    entry = make_entry(loaded)
    assert entry == make_entry(release)
    assert problems(entry) == []
    assert set(unfilled(entry)) == ASKED
    assert METHODS[name].__class__.__name__ in section(entry, "basic.description")
    stems = {record.step.rstrip("0123456789 ") for record in release.privacy.steps}
    assert all(f"- {stem}" in section(entry, "implementation.mechanisms") for stem in stems)
    assert release.checksum() in section(entry, "administrative.notes")


def test_source_and_target(rows):
    entry = make_entry(SourceTargetClustering(2, epsilon=5, bounds=(-1, 1)).fit(rows[:50], rows).release_)
    assert problems(entry) == []


def test_sparse_rows():
    from scipy.sparse import random_array

    table = random_array((300, 40), density=0.1, format="csr", random_state=0)
    fitted = LloydKMeans(2, epsilon=5, bounds=Sparse(max_active=6, n_components=16)).fit(table)
    text = section(make_entry(fitted.release_), "dp_variant.data_domain")
    assert "at most 6 active columns each, out of 40" in text


@pytest.mark.parametrize("variant", KINDS)
def test_every_kind_of_budget(rows, variant):
    release = released(rows, **KINDS[variant])
    entry = make_entry(release)
    assert section(entry, "dp_variant.variant_name") == variant
    parameters = section(entry, "privacy_loss.privacy_parameters")
    assert set(parameters) == set(KINDS[variant])
    spent = {name: getattr(release.privacy.spent, name) for name in parameters}
    assert all(spent[name] <= Fraction(repr(parameters[name])) for name in parameters)  # rounded up ...
    assert parameters == pytest.approx({name: float(amount) for name, amount in spent.items()}, rel=1e-5)
    assert release.privacy.composition() == section(entry, "accounting.composition")


def test_a_table_with_people(stays):
    bounds = {"age": (0, 100, "years"), "ward": ["icu", "er"], "smoker": bool}
    bounds["triage"] = {"levels": ["green", "red"], "ordered": True}
    people = {"unit": "patient", "max_rows_per_unit": 3, "describe": {"readmitted": ["no", "yes"]}}
    release = released(stays, bounds=bounds, missing="drop", **people)
    entry = make_entry(release)
    assert section(entry, "privacy_loss.privacy_unit") == "One person"
    assert "at most 3 rows of each person" in section(entry, "privacy_loss.privacy_unit_details")
    assert "'patient'" in section(entry, "privacy_loss.privacy_unit_details")
    assert section(entry, "dp_variant.data_domain").splitlines()[1:] == [
        "- age: 0 to 100 years",
        "- ward: one of icu, er, other",
        "- smoker: false to true",
        "- triage: green to red",
        "- readmitted: only described",
    ]
    tuning = section(entry, "implementation.preprocessing_and_hyperparameter_tuning")
    assert "Rows with missing values are left out." in tuning
    assert "n_clusters=3" in tuning
    text = json.dumps(entry)
    assert "P-1" not in text
    assert "400" not in text


def test_answers_complete_an_entry(rows):
    release = released(rows)
    entry = make_entry(release, ANSWERS)
    assert unfilled(entry) == problems(entry) == []
    assert entry["tier"] == 3
    assert entry["status"] == "Draft"
    assert entry["url_slug"] == f"kinds-of-stays-city-hospital-ministry-of-health-{release.created[:4]}"
    assert section(entry, "administrative.registry_authors") == ["A. Clerk"]
    flat = {f"{part}.{name}": text for part, fields in ANSWERS.items() for name, text in fields.items()}
    assert make_entry(release, flat) == entry


def test_tiers(rows):
    release = released(rows)
    assert make_entry(release)["tier"] == 1
    first = {"basic": ANSWERS["basic"], "administrative": ANSWERS["administrative"]}
    assert make_entry(release, first)["tier"] == 1
    assert make_entry(release, {**first, "deployment_model": {"data_source_type": "Static"}})["tier"] == 2
    assert make_entry(release, {"tier": 3})["tier"] == 3


def test_a_seeded_release_is_refused(rows, tmp_path):
    with pytest.raises(ParameterError, match=r"seeded: do not publish.*without a seed"):
        write(released(rows, random_state=0), tmp_path / "entry.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ({"basic": {"nam": "x"}}, r"got 'basic.nam'. Try 'basic.name'"),
        ({"colour": "red"}, "must be to a field"),
        ({"privacy_loss": {"privacy_parameters": {"epsilon": 0.1}}}, "must come from the release"),
        ({"implementation.mechanisms": "magic"}, "must come from the release"),
        ({"basic.data_product_type": "Poem"}, "must be one of Summary statistics"),
        ({"basic.publication_date": "1/1/2026"}, "must be a date such as"),
        ({"basic.name": " "}, "must be a text"),
        ({"basic.data_curators": [1]}, "must be a list of texts"),
        ({"url_slug": "Über uns"}, "lower-case letters"),
        ({"tier": 4}, "1, 2 or 3"),
        ({"basic": "x"}, "must be to a field"),
    ],
)
def test_answers_that_are_refused(rows, answers, message):
    with pytest.raises(ParameterError, match=message):
        make_entry(released(rows), answers)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda e: e.pop("status"), "status: is missing"),
        (lambda e: e.update(size=3), "size: is no field"),
        (lambda e: e["deployment"].update(basic="x"), "basic: is no field"),
        (lambda e: e["deployment"]["basic"].pop("name"), "basic.name: is missing"),
        (lambda e: e["deployment"]["dp_variant"].update(variant_name="Pure"), "variant_name: must be one of"),
        (lambda e: e["deployment"]["dp_variant"].update(variant_name=TO_FILL_IN), "variant_name: must be"),
        (lambda e: e["deployment"]["dp_variant"].update(variant_name="Approximate DP"), "delta and epsilon"),
        (lambda e: e["deployment"]["privacy_loss"].update(privacy_parameters={"epsilon": "1"}), "numbers"),
        (lambda e: e["deployment"]["privacy_loss"].update(privacy_parameters={"epsilon": -1}), "numbers"),
        (lambda e: e["deployment"]["administrative"].update(registry_authors=[]), "a list of texts"),
        (lambda e: e.update(tier=True), "tier: must be"),
        (lambda e: e.clear(), "url_slug: is missing"),
    ],
)
def test_problems_are_found(rows, change, problem):
    entry = make_entry(released(rows), ANSWERS)
    change(entry)
    assert any(problem in line for line in problems(entry))


def test_the_fields_are_those_of_the_registry(rows):
    entry = make_entry(released(rows))
    assert list(entry) == ["url_slug", "status", "tier", "deployment"]
    assert {part: list(fields) for part, fields in entry["deployment"].items()} == {
        "basic": [
            "name",
            "data_curators",
            "intended_use",
            "data_product_type",
            "data_product_region",
            "description",
            "publication_date",
        ],
        "dp_variant": ["variant_name", "data_domain", "unprotected_quantities"],
        "privacy_loss": [
            "privacy_unit",
            "privacy_unit_details",
            "privacy_parameters",
            "privacy_parameters_details",
        ],
        "deployment_model": ["model_name", "actors", "release_type", "data_source_type", "access_type"],
        "accounting": ["post_processing", "composition"],
        "implementation": ["preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"],
        "administrative": ["sources", "notes", "registry_authors"],
    }
    assert len(FIELDS) == 3 + 27


LINE = re.compile(r'(  )*(\w+:( ("(\\.|[^"\\])*"|[\d.e+-]+|\|-))?|- "(\\.|[^"\\])*")')


def test_the_file(rows, tmp_path):
    path = tmp_path / "entry.yaml"
    release = released(rows, epsilon=1, delta=1e-6)
    entry = write(release, path, {**ANSWERS, "basic.description": 'a "b"\\ \u2028\x85: #\nc', "tier": "2"})
    assert entry["tier"] == 2
    assert path.stat().st_mode & 0o777 == 0o644
    in_block = False
    for line in path.read_text(encoding="utf-8").splitlines():
        in_block = in_block and line.startswith("      ")
        assert in_block or LINE.fullmatch(line), line
        in_block = in_block or line.endswith("|-")


def test_a_yaml_reader_reads_the_entry(rows, tmp_path):
    wild = 'a "b"\\ \u2028\x85\x7f\ufeff: # 😀\n  - yes\r\tno'
    for text in (wild, "- yes\n# no: 1\n---\n%x\n'\"", "a\n", " a\nb", "a\n\nb", "1e-6"):
        entry = write(released(rows, epsilon=1, delta=1e-6), tmp_path / "entry.yaml", {"basic.name": text})
        assert yaml.safe_load((tmp_path / "entry.yaml").read_text(encoding="utf-8")) == entry
        assert section(entry, "basic.name") == text
