"""Wide tables: unit vectors by three recipes, embeddings of texts, pictures, and the tables of Google's sweep."""

import importlib.util
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import centre_data
from sfumato.datasets import load, load_table, tagged_groups

UNIT_ROWS, UNIT_CLUSTERS = 100_000, 50
ROWS_SEED = 2100  # of simulated rows: others were looked at during development
RECIPES = {"A": "A, isotropic noise", "B": "B, anisotropic noise", "C": "C, families of centres"}
STANDARDISED = ("gas_turbine",)
TEXTS = ("wordnet_glosses", "ag_news", "clinc150", "dblp_titles")
ENCODER = "wordllama"
NO_ENCODER = f"Embeddings of texts were not measured: the package `{ENCODER}` is missing (`pip install sfumato[bench]`)."
AT_A_TIME = 4096  # rows


class WideTable(NamedTuple):
    """Rows, dense or sparse, and their classes if there are any."""

    X: Any
    classes: np.ndarray | None


def has_encoder() -> bool:
    return importlib.util.find_spec(ENCODER) is not None


@lru_cache(maxsize=1)
def wide_table(name: str, n_rows: int | None = None) -> WideTable:
    """A table by name; the first or random `n_rows` if not all."""
    if name.startswith("unit"):  # unit A 384
        _, recipe, n_columns = name.split()
        return WideTable(*unit_vectors(n_rows or UNIT_ROWS, int(n_columns), UNIT_CLUSTERS, recipe, ROWS_SEED))
    if name == "tagged_groups":
        return WideTable(*tagged_groups(*(() if n_rows is None else (n_rows,))))
    if name in centre_data.DATA_SETS and centre_data.DATA_SETS[name].n_blob_features:
        rows = centre_data.rows_of(name, ROWS_SEED, n_rows)
        return WideTable(rows.X, rows.classes)
    return sampled(name, *(embedded(name) if name in TEXTS else load(name)), n_rows)


def sampled(name: str, X: np.ndarray, classes: np.ndarray | None, n_rows: int | None) -> WideTable:
    if name in STANDARDISED:
        X = (X - X.mean(axis=0)) / X.std(axis=0)
    if n_rows is None:
        return WideTable(X, classes)
    chosen = np.random.default_rng(0).permutation(len(X))[:n_rows]
    return WideTable(X[chosen], None if classes is None else classes[chosen])


def unit_vectors(n: int, d: int, k: int, recipe: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors in clusters of uneven size.

    A: noise of length 1 around centres of length 1, the same in all columns. B: noise of length 0.8, in some columns
    far more than in others, and centres of the same shape. C: centres in ten families, sizes like 1 / rank, and noise
    of length 0.5 to 1, another for each cluster.
    """
    rng = np.random.default_rng(seed)
    sizes = np.arange(1, k + 1) ** (-1.0 if recipe == "C" else -0.6)
    labels = rng.choice(k, n, p=sizes / sizes.sum())
    widths = rng.permutation(np.arange(1, d + 1) ** {"A": 0.0, "B": -0.5, "C": -0.25}[recipe])
    widths /= np.linalg.norm(widths)
    centers = rng.normal(size=(k, d))
    if recipe == "B":
        centers *= widths
    if recipe == "C":
        centers = rng.normal(size=(10, d))[rng.integers(10, size=k)] + 0.8 * centers
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    lengths = {"A": np.ones(k), "B": np.full(k, 0.8), "C": rng.uniform(0.5, 1.0, k)}[recipe]
    X = rng.normal(size=(n, d))
    for first in range(0, n, AT_A_TIME):  # in place: the rows take hundreds of megabytes
        part, mine = X[first : first + AT_A_TIME], labels[first : first + AT_A_TIME]
        part *= widths * lengths[mine][:, None]
        part += centers[mine]
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return X, labels


def embedded(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts as vectors of length 1 in 256 columns, by a public encoder, and their classes."""
    table = load_table(name)
    texts = [text or "" for text in table["text"].to_pylist()]
    X = np.nan_to_num(encoder().embed(texts, norm=True)).astype(
        np.float64
    )  # a text without words has no direction
    return X, np.unique(table["label"].to_numpy(zero_copy_only=False), return_inverse=True)[1]


def encoder() -> Any:
    """The encoder with the weights that its package ships.

    The package looks for the tokenizer in a folder that it does not have, so it gets one from here.
    """
    import wordllama

    shipped = Path(wordllama.__file__).parent / "tokenizers"
    with tempfile.TemporaryDirectory() as cache:
        for folder in ("tokenizers", "tokenizer"):
            (Path(cache) / folder).mkdir()
            for path in shipped.glob("*.json"):
                shutil.copy(path, Path(cache) / folder)
        return wordllama.WordLlama.load(cache_dir=cache, disable_download=True)
