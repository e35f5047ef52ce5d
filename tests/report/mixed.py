"""A release of a mixed table, made by hand: four clusters, the last of which is nothing but noise."""

import datetime
from dataclasses import replace
from fractions import Fraction

import numpy as np

from sfumato import Release
from sfumato.budget import Budget, PrivacyStatement, Record
from sfumato.budget.records import Sensitivity
from sfumato.domain import Unit
from sfumato.domain.columns import described_columns, read_bounds
from sfumato.domain.scaling import Scaling
from sfumato.public.models import CentreModel
from sfumato.public.profiles import Profiles
from sfumato.public.profiles.bins import table_edges

WARDS = [f"Ward {i}" for i in range(50)]
BOUNDS = {
    "age": (0, 100, "years"),
    "admitted": (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31)),
    "ward": WARDS,
    "severity": {"levels": ["mild", "moderate", "severe"], "ordered": True},
    "hour": {"cycle": (0, 24)},
    "insured": ["yes", "no"],
}
SIZES = np.array([5_000.0, 3_000.0, 2_000.0, 4.0])
STD = 6.0


def coordinates(columns, domain):
    """Centres: ages 30, 40, 50, 60; a ward each; hours 0, 6, 12, 18."""
    rows = []
    for k in range(4):
        row = []
        for each, low in zip(columns.coordinates, domain.low, strict=True):
            angle = np.pi / 2 * k
            values = {"cos": np.cos(angle), "sin": np.sin(angle)}
            match each.kind:
                case "level" if each.column == "ward":
                    row.append(0.7 * (each.level == WARDS[k]) + 0.006)
                case "level":
                    row.append(0.6 if each.level == "yes" else 0.3)
                case "other":
                    row.append(0.0 if each.column == "ward" else 0.1)
                case "cycle":
                    row.append(0.8 * values[each.part])
                case "rank":
                    row.append(0.5 * k)
                case _:
                    row.append(low + 30 + 10 * k)
        rows.append(row)
    return np.array(rows)


def profiles(rng):
    """Noisy counts of rows around the centres; "insured" is the same everywhere."""
    told = [column for _, column in described_columns(BOUNDS)]
    edges, counts, table = [], [], []
    for column in told:
        own = table_edges(column)
        step = 1 if column.kind == "level" else max(1, (len(own) - 1) // 24)
        own = np.append(own[:-1:step], own[-1])
        middles = (own[1:] + own[:-1]) / 2
        exact = np.zeros((4, len(own)))
        for k in range(4):
            if column.column == "insured":
                shares = np.array([0.6, 0.3, 0.1])
            elif column.kind == "level":
                shares = np.full(len(middles), 0.3 / len(middles))
                shares[k if k < len(column.levels) else 0] += 0.7
            else:
                place = 0.2 + 0.2 * k
                z = (middles - column.low) / (column.high - column.low)
                shares = np.exp(-(((z - place) / 0.08) ** 2) / 2) * np.diff(own)
            exact[k, :-1] = SIZES[k] * shares / shares.sum()
        exact[:, -1] = 0.0
        noise = rng.normal(0, STD, exact.shape)
        noise[3] = 0.0
        edges.append(own)
        counts.append(np.round(exact + noise).astype(np.int64))
        table.append(np.round(exact.sum(axis=0) + rng.normal(0, STD, len(own))).astype(np.int64))
    parts = tuple(edges), tuple(table), tuple(edges), tuple(counts)
    return Profiles(tuple(told), *parts, "discrete Gaussian", STD, STD)


def release(*, has_profiles=True, std=1.0, seeded=False):
    """Noise of this many years in the ages, and of a hundredth of the width elsewhere."""
    columns, domain = read_bounds(BOUNDS, None, Unit())
    domain = Scaling().applied(domain, columns.coordinates)
    centers = coordinates(columns, domain)
    stds = np.broadcast_to(0.01 * (np.array(domain.high) - domain.low), centers.shape).copy()
    stds[:, 0] = std
    model = CentreModel(centers, SIZES, center_stds=stds, size_stds=np.full(4, 10.0))
    names = ["rows", *(f"{name} {i}" for i in range(1, 10) for name in ("splits", "sizes")), "centres"]
    steps = tuple(Record(name, "discrete Laplace", Sensitivity(), Fraction(100)) for name in names)
    privacy = PrivacyStatement(Budget(1), Unit(), steps, seeded)
    made = Release("DPM", {"n_clusters": 4}, domain, columns.labels, model, privacy, columns)
    return replace(made, profiles=profiles(np.random.default_rng(0))) if has_profiles else made
