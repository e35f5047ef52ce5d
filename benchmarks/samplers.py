"""Time per draw of the discrete noises against OpenDP, on int64 vectors.

Run as ``python benchmarks/samplers.py --out samplers.json``. Both sides draw from the operating system.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import opendp.prelude as dp

from sfumato.mechanisms import Entropy, discrete_gaussian, discrete_laplace

SCALES = [1, 10, 1000, 2**35 + 1]
OURS = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}


def main() -> None:
    arguments = parse_arguments()
    rows = [
        compare(noise, scale, arguments.draws, arguments.opendp_draws, arguments.repeats)
        for noise in OURS
        for scale in SCALES
    ]
    print_table(rows, arguments)
    if arguments.out:
        settings = {name: getattr(arguments, name) for name in ("draws", "opendp_draws", "repeats")}
        arguments.out.write_text(json.dumps({"settings": settings, "rows": rows}, indent=2) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="where to write the figures as JSON")
    parser.add_argument("--draws", type=int, default=10**6)
    parser.add_argument("--opendp-draws", type=int, default=2 * 10**5, help="fewer, because it is slow")
    parser.add_argument("--repeats", type=int, default=5)
    return parser.parse_args()


def compare(noise: str, scale: int, n_draws: int, n_opendp: int, n_repeats: int) -> dict[str, Any]:
    """Alternate the two sides, so that other load on the machine falls on both."""
    entropy, sampler, measurement = Entropy(), OURS[noise], opendp_measurement(noise, scale)
    zeros = [0] * n_opendp
    sampler(Fraction(scale), 1000, entropy)
    measurement(zeros[:1000])
    ours, theirs = [], []
    for _ in range(n_repeats):
        ours.append(seconds(lambda: sampler(Fraction(scale), n_draws, entropy)) / n_draws)
        theirs.append(seconds(lambda: measurement(zeros)) / n_opendp)
    return {
        "noise": noise,
        "scale": scale,
        "ours_us": 1e6 * statistics.median(ours),
        "opendp_us": 1e6 * statistics.median(theirs),
        "ratio": statistics.median(theirs) / statistics.median(ours),
    }


def opendp_measurement(noise: str, scale: int) -> Callable[[list[int]], list[int]]:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if noise == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=float(scale))
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=float(scale))


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def print_table(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> None:
    print(f"median of {arguments.repeats} repeats of {arguments.draws} draws")
    print(f"OpenDP is timed on {arguments.opendp_draws} draws at a time; all times are per draw")
    print(f"{'noise':10}{'scale':>14}{'ours us':>10}{'OpenDP us':>12}{'ratio':>8}")
    for row in rows:
        print(
            f"{row['noise']:10}{row['scale']:>14}{row['ours_us']:>10.3f}{row['opendp_us']:>12.2f}{row['ratio']:>8.1f}"
        )


if __name__ == "__main__":
    main()
