"""Terms of clusters: how many of the ten terms that are shown are among the ten that exact counts would show."""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

from benchmarks.centre_data import markdown
from sfumato import datasets
from sfumato.budget import Budget, calibrate
from sfumato.cluster.shared.terms import MAX_TERMS, TermsAsked, find_terms
from sfumato.curator.curator import Curator
from sfumato.domain import Domain
from sfumato.domain.words import words_by
from sfumato.private.engines.terms import TermEngine
from sfumato.private.mechanisms.entropy import Entropy
from sfumato.private.terms import RawTerms, read_terms, term_counts
from sfumato.public.terms import Terms

SEEDS, QUICK_SEEDS = 5, 2
CLUSTERS = {"ag_news": 10, "clinc150": 50, "dblp_titles": 10, "wordnet_glosses": 45}
CHOSEN_ON = ("ag_news", "clinc150")  # the constants; the others only report
EPSILONS, DELTA = (1.0, 4.0), 1e-6
TOP, VOCABULARY = 10, 2000
N_COMPONENTS = 64
MEANS = ("precision", "true", "shown", "of_ten", "terms")
TOKENS = words_by("words", "english")


class Corpus(NamedTuple):
    """The private half of a corpus, with fixed clusters, and public terms from the other half."""

    raw: RawTerms
    n_clusters: int
    public: tuple[str, ...]
    exact: Terms


@lru_cache(maxsize=1)
def corpus(name: str) -> Corpus:
    table = datasets.load_table(name)
    texts = [text or "" for text in table["text"].to_pylist()]
    order = np.random.default_rng(0).permutation(len(texts))
    public, private = ([texts[i] for i in half] for half in np.array_split(order, 2))
    encoder = TfidfVectorizer(stop_words="english", min_df=2, sublinear_tf=True).fit(public)
    svd = TruncatedSVD(N_COMPONENTS, random_state=0).fit(encoder.transform(public))
    rows = normalize(svd.transform(encoder.transform(private)))
    k = CLUSTERS[name]
    labels = MiniBatchKMeans(k, n_init=3, random_state=0).fit_predict(rows).astype(np.int64)
    raw = read_terms(private, labels, None, TOKENS)
    return Corpus(raw, k, most_frequent(public), exact_terms(raw, k))


def most_frequent(texts: list[str]) -> tuple[str, ...]:
    raw = read_terms(texts, np.zeros(len(texts), dtype=np.int64), None, TOKENS)
    counts = np.bincount(raw.uses[2], minlength=len(raw.terms))
    return tuple(raw.terms[int(j)].as_py() for j in np.argsort(-counts, kind="stable")[:VOCABULARY])


def exact_terms(raw: RawTerms, k: int) -> Terms:
    """Exact counts of all terms, ranked in the same way."""
    vocabulary = raw.terms.to_pylist()
    counts = term_counts(raw, vocabulary, k, len(vocabulary), 1)
    noise = ("discrete Gaussian", 0.0)
    return Terms(tuple(vocabulary), counts[:, :-1], counts[:, -1], *noise, len(vocabulary), 1.0, TOP)


@lru_cache(maxsize=1)
def exact_ten(name: str) -> list[set[str]]:
    return [{term.term for term in own} for own in corpus(name).exact]


def are_true(exact: Terms, cluster: int, shown: list[str]) -> int:
    """How many of the shown terms have a larger exact share in the cluster than elsewhere."""
    known = {term: j for j, term in enumerate(exact.terms)}
    places = [known[term] for term in shown if term in known]
    own = exact.counts[cluster, places] / exact.sizes[cluster]
    rest = exact.counts[:, places].sum(axis=0) - exact.counts[cluster, places]
    return int((own > rest / (exact.sizes.sum() - exact.sizes[cluster])).sum())


def terms_on(name: str, epsilon: float, vocabulary: str, seed: int) -> dict[str, Any]:
    found = corpus(name)
    asked = TermsAsked.of("private" if vocabulary == "private" else found.public, MAX_TERMS, TOP)
    engine = TermEngine(2, found.n_clusters, 1, lambda: found.raw)
    priced = calibrate(asked.plan(1), Budget(epsilon, DELTA))
    told = find_terms(asked, 1, Curator(engine, Domain.from_bounds((0, 1), 2), priced, Entropy(seed)))
    shown = [[term.term for term in own] for own in told]
    right = [len(exact.intersection(own)) for exact, own in zip(exact_ten(name), shown, strict=True)]
    true = [are_true(found.exact, cluster, own) for cluster, own in enumerate(shown)]
    n_shown = [len(own) for own in shown]
    return {
        "data": name,
        "epsilon": epsilon,
        "vocabulary": vocabulary,
        "precision": sum(right) / max(sum(n_shown), 1),
        "true": sum(true) / max(sum(n_shown), 1),
        "shown": float(np.mean(n_shown)),
        "of_ten": float(np.mean(right)),
        "terms": len(told.terms),
        "max_terms": told.max_terms,
        "rows": found.raw.n_people,
    }


def measure(*, quick: bool) -> dict[str, Any]:
    names = ["clinc150"] if quick else list(CLUSTERS)
    measured = []
    for name in names:
        for epsilon in EPSILONS:
            for vocabulary in ("private", "public"):
                measured += [
                    terms_on(name, epsilon, vocabulary, s) for s in range(QUICK_SEEDS if quick else SEEDS)
                ]
                print(measured[-1], flush=True)
    return {"runs": measured}


def render(measured: dict[str, Any]) -> str:
    runs = measured["runs"]
    groups: dict[tuple[str, float, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["data"], run["epsilon"], run["vocabulary"]), []).append(run)
    rows = []
    for (name, epsilon, vocabulary), own in groups.items():
        mean = {key: np.mean([run[key] for run in own]) for key in MEANS}
        spread = np.std([run["precision"] for run in own])
        rows.append(
            [
                f"{name}{' (chosen on)' if name in CHOSEN_ON else ''}",
                f"{own[0]['rows']:,}",
                str(CLUSTERS[name]),
                f"{epsilon:g}",
                vocabulary,
                f"{mean['terms']:,.0f}",
                f"{mean['precision']:.2f} ± {spread:.2f}",
                f"{mean['true']:.3f}",
                f"{mean['shown']:.1f}",
                f"{mean['of_ten']:.1f}",
            ]
        )
    head = ["texts", "private texts", "clusters", "epsilon", "vocabulary", "its terms"]
    head += ["precision", "really more frequent", "shown per cluster", "of the exact ten"]
    table = "\n".join(markdown(head, rows))
    n_seeds = max(len(own) for own in groups.values())
    return f"""## Terms of clusters

Half of each corpus is public: TF-IDF and its leading {N_COMPONENTS} directions are fitted there, and the public vocabulary is its {VOCABULARY:,}
most frequent words. The other half is private. Its clusters are fixed (MiniBatchKMeans, not private), so that only the terms differ. The exact
ten are those that the same ranking shows from exact counts of all words. `precision` is the part of the shown terms that are among them; a cluster
shows at most ten, and fewer where noise hides the rest. `really more frequent` is the part whose exact share in the cluster is larger than
elsewhere: what is shown sets the cluster apart, even if ten others do so more. `of the exact ten` says how many of them are shown. The budget, with delta {DELTA:g}, is for
the terms alone; a text is a person. Means over {n_seeds} seeds, ± one standard deviation. Constants were chosen on {" and ".join(CHOSEN_ON)}
([notes](docs/notes/constants.md#terms)).

{table}
"""
