"""How the pictures of the benchmarks look, and where they go."""

from pathlib import Path

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
STYLE = {
    "svg.hashsalt": "sfumato",
    "svg.fonttype": "none",  # text stays text: small, and searchable
    "font.sans-serif": ["DejaVu Sans", "Arial"],
    "font.size": 8.5,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#888888",
    "xtick.color": "#555555",
    "ytick.color": "#555555",
}
