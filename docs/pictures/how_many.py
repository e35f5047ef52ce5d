"""The picture of docs/how_many.md. Run from the root of the repository: python docs/pictures/how_many.py"""

from pathlib import Path

from sfumato import LloydKMeans, plot
from sfumato.datasets import separated_gaussians


def main() -> None:
    """Draw the curve of a small example."""
    rows, _ = separated_gaussians(30_000, n_clusters=6, n_features=4, random_state=0)
    model = LloydKMeans("auto", epsilon=1.0, delta=1e-6, bounds=(-1, 1), random_state=0).fit(rows)
    sheet = plot.blank(6, 3.6)
    ax = plot.numbers(model, sheet.add_subplot())
    ax.set_title("")
    ax.set_xlim(0.5, 18.5)
    sheet.savefig(Path(__file__).parent / "how_many.png", dpi=110)


if __name__ == "__main__":
    main()
