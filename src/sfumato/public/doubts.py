"""What to doubt in a release, in short sentences: where noise or bounds hide what was to be found.

Everything here follows from released values and public parameters, so a doubt may be published.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.domain import Domain, FloatArray
from sfumato.domain.columns import Columns, Coordinate
from sfumato.domain.sparse import Sparse
from sfumato.errors import NoiseWarning
from sfumato.public.density.nested import NestedHistogram
from sfumato.public.density.regions import Regions
from sfumato.public.density.stripes import is_striped
from sfumato.public.intervals import Sizes, half_widths
from sfumato.public.models.centres import CentreModel
from sfumato.public.profiles import Profiles

Mask = NDArray[np.bool_]

# Chosen on Adult, bank and simulated blobs; checked on letters, gas turbines, MNIST and fashion embeddings,
# hospital and flights: docs/notes/constants.md#doubts
HIDDEN = 0.25  # of the width between the bounds: half of a 95 % interval that is longer hides a centre
SMALL = 0.1  # of the mean size of a cluster: larger clusters are not called empty
UNEQUAL = 10.0  # times as wide: the narrower of two columns that are measured as they are hardly counts
MOST, NEARLY_ALL = 0.5, 0.99  # shares of the rows at a bound
STRIP, IN_STRIP = 0.1, 0.02  # part of the width next to a bound, and share of the rows that shows a cut there
CLEAR = 3.0  # standard deviations by which a share stands out
NATURAL = (0.0, 1.0)  # low bounds at which counts and amounts start: many rows may well be there
LONGEST_SCALE = 10  # of whole numbers from 0 or 1, such as marks: many rows may be at its ends
EVERYWHERE = 0.5  # of what the bounds allow: one span that covers more sets nothing apart
KNOWN_CENTRE = 0.05  # of the width: a centre whose noise is larger is at no particular place
MOST_NAMED = 6  # columns or clusters in a sentence


class Published(Protocol):
    """The parts of a release that tell what to doubt. `Release` documents them."""

    @property
    def parameters(self) -> dict[str, Any]: ...  # noqa: D102
    @property
    def domain(self) -> Domain: ...  # noqa: D102
    @property
    def columns(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def model(self) -> Any: ...  # noqa: D102
    @property
    def reading(self) -> Columns | None: ...  # noqa: D102
    @property
    def profiles(self) -> Profiles | None: ...  # noqa: D102
    @property
    def sparse(self) -> Sparse | None: ...  # noqa: D102


def doubts(release: Published) -> tuple[str, ...]:
    """What should not be relied on in a release, as short sentences. Empty if there is nothing to say.

    Parameters
    ----------
    release : Release

    Notes
    -----
    A sentence says that

    - half of a 95 % interval of a centre is more than a quarter of the width between the column's bounds,
      or that no level of a category stands out from the noise;
    - fewer clusters came back than were asked for;
    - a density has no span, or the only one covers most of what the bounds allow;
    - a column of a density holds whole numbers in cells narrower than these;
    - sizes of clusters cannot be told from zero, or are uncertain by more than themselves;
    - a mixture was cut into the number of clusters that was asked for, and one of them has less than a tenth
      of their mean size: cuts that go wrong often take a small part off the rim;
    - most rows are at a bound of a column, so that the bounds may be too narrow;
    - columns were measured as they are although their bounds differ more than tenfold in width.

    Clusters are numbered as in `predict`, from 0.

    Privacy
    -------
    Post-processing: released values and public parameters only.
    """
    found = [_missing(release), _nowhere_or_everywhere(release)]
    sizes = getattr(release.model, "estimated_sizes", None)
    unseen = np.zeros(0, dtype=np.bool_)
    if sizes is not None and sizes.ends is not None:
        empty = _empty(sizes, release.profiles)
        lost = _lost(sizes) & ~empty
        found += [_about_empty(empty, sizes.group), _about_lost(lost, sizes.group)]
        unseen = empty | lost
        found.append(_about_slivers(release, sizes, unseen))
    if getattr(release, "sparse", None) is not None:  # whose coordinates mean nothing to a reader
        return tuple(sentence for sentence in found if sentence)
    found += _about_measure(release)
    centres = getattr(release.model, "centres", None)
    if isinstance(centres, CentreModel) and centres.center_stds is not None:
        found += _about_centres(release, centres, unseen)
    found += _about_bounds(release, centres)
    found += _about_stripes(release)
    return tuple(sentence for sentence in found if sentence)


def warn_of(release: Published) -> None:
    """Warn of every doubt about a release, once each."""
    for sentence in doubts(release):
        warnings.warn(sentence, NoiseWarning, stacklevel=4)  # the line that called `fit`


def _missing(release: Published) -> str:
    """Say that clusters that were asked for are missing."""
    asked = release.parameters.get("n_clusters", release.parameters.get("n_components"))
    found = release.model.attributes().get("n_clusters")
    if not isinstance(asked, int) or not isinstance(found, int) or found >= asked:
        return ""
    came = "1 cluster came" if found == 1 else f"{found:,} clusters came"
    return f"{came} back and {asked:,} were asked for: the noise hides the others, or there are no more"


def _nowhere_or_everywhere(release: Published) -> str:
    """Say that a density has no span, or one nearly everywhere."""
    regions: Regions | None = getattr(release.model, "regions", None)
    if regions is None or regions.n_spans > 1:
        return ""
    if not regions.n_spans:
        return "No span was found: nothing stands out from the noise. Are most rows within the bounds?"
    share = len(regions.cells) / regions.grid.n_cells
    if share <= EVERYWHERE:
        return ""
    return f"The only span covers {share:.0%} of what the bounds allow: nothing stands out from the rest"


def _about_stripes(release: Published) -> Iterator[str]:
    """Columns of a density whose whole numbers are farther apart than the cells are wide."""
    histogram = getattr(release.model, "histogram", None)
    if not isinstance(histogram, NestedHistogram) or release.model.regions.n_spans < 2:
        return
    striped = [name for j, name in enumerate(_names(release)) if is_striped(histogram, j)]
    if striped:
        yield (
            f"The rows lie at whole numbers of {_listed(striped)}, and cells are narrower: spans may be "
            "stripes of single numbers. Add a random number between -0.5 and 0.5 to each value before the fit"
        )


def _empty(sizes: Sizes, profiles: Profiles | None) -> Mask:
    """Clusters whose size cannot be told from zero."""
    counted = sizes
    if profiles is not None and profiles.n_clusters == len(sizes.estimates):
        counted = profiles.sizes  # whose errors are those of noise alone
    assert counted.ends is not None
    if not len(sizes.estimates):
        return np.zeros(0, dtype=np.bool_)
    unclear = np.asarray(counted.ends[0] <= 0)
    # The error of a size also covers rows at borders that still move. A large cluster is not empty for that.
    small = sizes.estimates < SMALL * float(np.mean(sizes.estimates))
    return np.asarray(unclear & (small | unclear.all()))


def _lost(sizes: Sizes) -> Mask:
    """Clusters whose size is uncertain by more than itself: the noise hides where they are."""
    assert sizes.ends is not None
    halves = sizes.ends[1] - sizes.estimates
    return np.asarray(halves >= half_widths(sizes.estimates))


def _about_empty(empty: Mask, group: str) -> str:
    if not empty.any():
        return ""
    what = "size" if empty.sum() == 1 else "sizes"
    return f"{_capital(_numbered(group, empty))} may be empty: the {what} cannot be told from zero"


def _about_lost(lost: Mask, group: str) -> str:
    if not lost.any():
        return ""
    what = "size is" if lost.sum() == 1 else "sizes are"
    return f"The noise hides {_numbered(group, lost)}: the {what} uncertain by more than 100 %"


def _about_slivers(release: Published, sizes: Sizes, unseen: Mask) -> str:
    """Small parts that the cut of a joined mixture separates, if its number of clusters was asked for."""
    groups = getattr(release.model, "groups", None)
    if not getattr(groups, "is_joined", False) or release.parameters.get("n_clusters") is None:
        return ""
    small = (sizes.estimates < SMALL * float(np.mean(sizes.estimates))) & ~unseen
    if not small.any():
        return ""
    holds = "holds" if small.sum() == 1 else "hold"
    return (
        f"{_capital(_numbered(sizes.group, small))} {holds} less than a tenth of the mean size: the cut may "
        "have taken off the rim of the data. Take fewer components, or look at other cuts"
    )


def _about_measure(release: Published) -> Iterator[str]:
    """Columns that hardly count, because others are much wider and all are measured as they are."""
    domain, domain_measure = release.domain, release.domain.measure
    is_scaled = bool(domain_measure) and release.parameters.get("scale", "bounds") is not None
    if is_scaled or domain.radius is not None or _shares_unit(release.reading):
        return
    widths = 2 * domain.measured.half_width
    names = _names(release)
    narrow = [name for name, width in zip(names, widths, strict=True) if UNEQUAL * width < widths.max()]
    if narrow:
        widest = names[int(np.argmax(widths))]
        yield (
            f"Columns were measured as they are, and the bounds of {widest!r} are over {UNEQUAL:g} times "
            f"as wide as those of {_listed(narrow)}, which hardly count. Use scale='bounds', or declare units"
        )


def _shares_unit(reading: Columns | None) -> bool:
    """Whether all columns were declared to have one unit."""
    units = {coordinate.unit for coordinate in reading.coordinates} if reading else {""}
    return len(units) == 1 and "" not in units


def _about_centres(release: Published, centres: CentreModel, unseen: Mask) -> Iterator[str]:
    """Columns in which noise hides the centres of clusters that can be seen."""
    assert centres.center_stds is not None
    halves = half_widths(centres.center_stds)
    hidden = halves > HIDDEN * 2 * release.domain.half_width
    by_column: dict[str, Mask] = {}
    levels: dict[str, Mask] = {}
    blocks = {j: block for block in release.domain.blocks for j in range(block.start, block.stop)}
    for j, name in enumerate(_names(release)):
        block = blocks.get(j)
        is_category = block is not None and block.kind == "simplex"
        of_kind = levels if is_category else by_column
        of_kind[name] = of_kind.get(name, np.zeros(len(halves), dtype=np.bool_)) | hidden[:, j]
        if block is not None and is_category and j == block.start:
            own = slice(block.start, block.stop)
            levels[name] |= (centres.cluster_centers[:, own] <= halves[:, own]).all(axis=1)
    seen = ~unseen if len(unseen) == len(halves) else np.ones(len(halves), dtype=np.bool_)
    for names, clusters in _grouped(by_column, seen):
        which = _numbered("cluster", clusters)
        yield f"The noise in {_listed(names)} is more than a quarter of the width of the bounds, in {which}"
    for names, clusters in _grouped(levels, seen):
        which = _numbered("cluster", clusters)
        of = "the centre of" if clusters.sum() == 1 else "the centres of"
        yield f"The noise hides which levels of {_listed(names)} are in {of} {which}"


def _grouped(hidden: Mapping[str, Mask], seen: Mask) -> Iterator[tuple[list[str], Mask]]:
    """Columns that are hidden in the same clusters."""
    groups: dict[bytes, tuple[list[str], Mask]] = {}
    for name, clusters in hidden.items():
        own = clusters & seen
        if own.any():
            groups.setdefault(own.tobytes(), ([], own))[0].append(name)
    yield from groups.values()


def _about_bounds(release: Published, centres: CentreModel | None) -> Iterator[str]:
    """Columns with most rows at their bounds."""
    if release.profiles is not None:
        profiles = release.profiles
        cut = [name for name in profiles.names if _is_cut(profiles, name)]
    elif isinstance(centres, CentreModel) and centres.center_stds is not None:
        cut = _at_bounds(release, centres)
    else:
        return
    if cut:
        yield f"Most rows are at a bound of {_listed(cut)}: the bounds may be too narrow"


def _is_cut(profiles: Profiles, name: str) -> bool:
    """Whether the counts of the table look as if the bounds had cut a column off.

    Nearly all rows are at its bounds; or most rows are, and others lie next to the same bound, so that it is
    not merely a frequent value.
    """
    column, j = profiles.column(name), profiles.names.index(name)
    if column.kind not in ("number", "date") or (column.low, column.high) == (0.0, 1.0):
        return False
    edges, counts = profiles.table_edges[j], profiles.table_counts[j][:-1].astype(np.float64)
    total = profiles.size().value - float(profiles.table_counts[j][-1])
    at_low, at_high = float(counts[0]), float(counts[-1])
    if total <= CLEAR * profiles.table_std:
        return False
    if at_low + at_high > NEARLY_ALL * total:
        return True
    if profiles.is_whole(name) and column.low in NATURAL and column.high <= LONGEST_SCALE:
        return False
    strip = STRIP * (column.high - column.low)
    middles = (edges[1:-2] + edges[2:-1]) / 2  # of all bins but those of the bounds
    near_low = counts[1:-1][middles <= column.low + strip]
    near_high = counts[1:-1][middles >= column.high - strip]
    sides = [(at_high, near_high)]
    if column.kind == "date" or column.low not in NATURAL:
        sides.append((at_low, near_low))
    at_cuts = [at for at, near in sides if _is_filled(near, total, profiles.table_std)]
    return sum(at_cuts) > MOST * total


def _is_filled(counts: FloatArray, total: float, std: float) -> bool:
    rows, noise = float(counts.sum()), std * math.sqrt(len(counts))
    return rows > max(IN_STRIP * total, CLEAR * noise)


def _at_bounds(release: Published, centres: CentreModel) -> list[str]:
    """Without profiles: columns in which the centres of nearly all rows are at a bound."""
    assert centres.center_stds is not None
    domain, weights = release.domain, centres.cluster_sizes
    in_blocks = {j for block in domain.blocks for j in range(block.start, block.stop)}
    coordinates: Sequence[Coordinate | None]
    coordinates = release.reading.coordinates if release.reading else [None] * domain.n_features
    found = []
    for j, (name, coordinate) in enumerate(zip(_names(release), coordinates, strict=True)):
        is_plain = coordinate is None or coordinate.kind in ("number", "date")
        low, high, width = domain.low[j], domain.high[j], domain.high[j] - domain.low[j]
        if j in in_blocks or not is_plain or (low, high) == (0.0, 1.0):
            continue
        values, halves = centres.cluster_centers[:, j], half_widths(centres.center_stds[:, j])
        at_low = (values - low <= halves) & (low not in NATURAL)
        at_bound = (at_low | (high - values <= halves)) & (halves < KNOWN_CENTRE * width)
        if float(weights[at_bound].sum()) > NEARLY_ALL * float(weights.sum()) > 0:
            found.append(name)
    return found


def _names(release: Published) -> list[str]:
    """Name of the column of each coordinate."""
    if release.reading is not None:
        return [coordinate.column for coordinate in release.reading.coordinates]
    return list(release.columns) or [f"column {j}" for j in range(1, release.domain.n_features + 1)]


def _listed(names: Sequence[str]) -> str:
    """Names of columns in a sentence, each once."""
    unique = [repr(name) for name in dict.fromkeys(names)]
    return _joined(unique)


def _numbered(group: str, chosen: Mask) -> str:
    """Clusters in a sentence: "cluster 3", "clusters 1, 4 and 5", or all of them."""
    numbers = [str(number) for number in np.flatnonzero(chosen)]
    if len(numbers) == len(chosen) > 1:
        return f"both {group}s" if len(numbers) == 2 else f"all {len(numbers):,} {group}s"
    return f"{group} {numbers[0]}" if len(numbers) == 1 else f"{group}s {_joined(numbers)}"


def _joined(words: list[str]) -> str:
    if len(words) > MOST_NAMED:
        words = [*words[: MOST_NAMED - 1], f"{len(words) - MOST_NAMED + 1:,} others"]
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
