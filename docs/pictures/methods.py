"""Draws the pictures of the method pages from released values: ``python docs/pictures/methods.py``.

Rows are simulated and runs seeded, so that the pictures can be made again. A release of real rows must have
no seed, and a picture of a seeded one says so; these have titles of their own: nobody in them is real.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image
from sklearn.datasets import make_moons

import sfumato
from sfumato import plot
from sfumato.datasets import CITY_BOUNDS, CITY_COLUMNS, city
from sfumato.domain import FloatArray

FOLDER = Path(__file__).parent
CITY = {"epsilon": 1.0, "bounds": CITY_BOUNDS, "random_state": 0}
MOONS = {"epsilon": 1.0, "bounds": ([-1.5, -1.0], [2.5, 1.5]), "random_state": 0}
N_CLUSTERS = 9
N_COLOURS = 255  # keeps the files small


def homes() -> pa.Table:
    """Homes of 50,000 simulated people, in kilometres."""
    return pa.table(dict(zip(CITY_COLUMNS, city(50_000, random_state=0)[0].T, strict=True)))


def moons() -> FloatArray:
    """Two moons, 10,000 rows."""
    return np.asarray(make_moons(10_000, noise=0.05, random_state=0)[0])


def centres(name: str, **parameters: object) -> Callable[[Axes], object]:
    """Picture of a centre method on the city."""
    return lambda ax: plot.centres(getattr(sfumato, name)(**parameters, **CITY).fit(homes()), ax)


def spans_at_a_radius(ax: Axes) -> None:
    """Picture of `DPDBSCAN`."""
    plot.spans(sfumato.DPDBSCAN(radius=0.12, min_samples=120, **MOONS).fit(moons()), ax)


def spans_of_peaks(ax: Axes) -> None:
    """Picture of `DensityTree`."""
    plot.spans(sfumato.DensityTree(**CITY).fit(homes()), ax)


def mixture(ax: Axes) -> None:
    """Picture of `DPMoG`."""
    plot.mixture(sfumato.DPMoG(N_CLUSTERS, **CITY).fit(homes()), ax)


def merged(ax: Axes) -> None:
    """Picture of `MorseClustering`."""
    base = sfumato.DPMoG(20)
    plot.mixture(sfumato.MorseClustering(base, n_clusters=2, **MOONS).fit(moons()), ax)


def chosen_places(ax: Axes) -> None:
    """Picture of `SourceTargetClustering`: medics in the west, homes everywhere."""
    rng = np.random.default_rng(0)
    target, medics = rng.uniform(0, 10, (800, 2)), rng.uniform(0, [5, 10], (300, 2))
    method = sfumato.SourceTargetClustering(4, epsilon=3.0, bounds=(0, 10), random_state=0)
    plot.places(method.fit(target, medics), ax, target=target)


PICTURES: dict[str, tuple[str, Callable[[Axes], object]]] = {
    "dpm": ("DPM, epsilon 1", centres("DPM")),
    "grid_kmeans": ("GridKMeans(9), epsilon 1", centres("GridKMeans", n_clusters=N_CLUSTERS)),
    "lloyd_kmeans": ("LloydKMeans(9), epsilon 1", centres("LloydKMeans", n_clusters=N_CLUSTERS)),
    "private_kmeans": ("PrivateKMeans(9), epsilon 1", centres("PrivateKMeans", n_clusters=N_CLUSTERS)),
    "coreset_kmeans": ("CoresetKMeans(9), epsilon 1", centres("CoresetKMeans", n_clusters=N_CLUSTERS)),
    "max_cover_kmeans": ("MaxCoverKMeans(9), epsilon 1", centres("MaxCoverKMeans", n_clusters=N_CLUSTERS)),
    "local_search_kmeans": (
        "LocalSearchKMeans(9), epsilon 1",
        centres("LocalSearchKMeans", n_clusters=N_CLUSTERS),
    ),
    "dbscan": ("DPDBSCAN(0.12, 120), epsilon 1", spans_at_a_radius),
    "density_tree": ("DensityTree, epsilon 1", spans_of_peaks),
    "mog": ("DPMoG(9), epsilon 1", mixture),
    "morse": ("MorseClustering(DPMoG(20), 2), epsilon 1", merged),
    "source_target": ("SourceTargetClustering(4), epsilon 3", chosen_places),
}


def main() -> None:
    """Draw all pictures."""
    for name, (title, draw) in PICTURES.items():
        figure = plot.blank(6.4, 4.8)
        ax = figure.add_subplot()
        draw(ax)
        ax.set_title(f"{title}, simulated rows", color="black", fontweight="normal", fontsize="medium")
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        image.quantize(N_COLOURS).save(FOLDER / f"method_{name}.png", optimize=True)


if __name__ == "__main__":
    main()
