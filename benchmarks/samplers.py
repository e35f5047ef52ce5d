"""Time per draw of the discrete noises against OpenDP, on int64 vectors. Both draw from the operating system."""

import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from benchmarks.clocks import seconds
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.mechanisms.noise import discrete_gaussian, discrete_laplace

SCALES = [1, 10, 1000, 2**35 + 1]
OURS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}


def measure(*, quick: bool) -> list[dict[str, Any]]:
    n_draws, n_repeats = (10**5, 1) if quick else (10**6, 3)
    rows = [compare(noise, scale, n_draws, n_repeats) for noise in OURS for scale in SCALES]
    for row in rows:
        print(row, flush=True)
    return rows


def compare(noise: str, scale: int, n_draws: int, n_repeats: int) -> dict[str, Any]:
    """Alternate the two sides, so that other load on the machine falls on both."""
    entropy, sampler, measurement = Entropy(), OURS[noise], opendp_measurement(noise, scale)
    zeros = [0] * n_draws
    sampler(Fraction(scale), 1000, entropy)
    measurement(zeros[:1000])
    ours, theirs = [], []
    for _ in range(n_repeats):
        ours.append(seconds(lambda: sampler(Fraction(scale), n_draws, entropy)) / n_draws)
        theirs.append(seconds(lambda: measurement(zeros)) / n_draws)
    return {
        "noise": noise,
        "scale": scale,
        "draws": n_draws,
        "repeats": n_repeats,
        "ours_us": 1e6 * statistics.median(ours),
        "opendp_us": 1e6 * statistics.median(theirs),
        "ratio": statistics.median(theirs) / statistics.median(ours),
    }


def opendp_measurement(noise: str, scale: int) -> Callable[[list[int]], list[int]]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if noise == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(scale))


def render(rows: list[dict[str, Any]]) -> str:
    lines = [
        "## Exact noise: time per draw",
        "",
        f"{rows[0]['draws']:,} draws at a time, median of {rows[0]['repeats']}, against OpenDP's `make_laplace` and "
        "`make_gaussian` in the same run, entropy from the operating system on both sides, one thread.",
        "",
        "| noise | scale | sfumato, us | OpenDP, us | times faster |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        scale = "2^35 + 1" if row["scale"] > 10**6 else row["scale"]
        lines.append(
            f"| {row['noise']} | {scale} | {row['ours_us']:.3f} | {row['opendp_us']:.1f} | {row['ratio']:.0f} |"
        )
    return "\n".join(lines) + "\n"
