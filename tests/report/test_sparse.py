"""The report on clusters of sparse rows."""

import pytest

from sfumato import LloydKMeans, Sparse, report
from sfumato.datasets import tagged_groups


@pytest.fixture(scope="module")
def fitted():
    X, _ = tagged_groups(2000, n_columns=2000, n_clusters=3, random_state=0)
    bounds = Sparse(max_active=128, n_components=64, feature_names=[f"<tag {j}>" for j in range(2000)])
    return LloydKMeans(3, rho=10, bounds=bounds, n_iter=2, random_state=0).fit(X)


def test_the_report_shows_terms_and_rules_of_rows(fitted):
    page = report.render(fitted.release_)
    assert fitted.top_terms_[0][0].replace("<", "&lt;").replace(">", "&gt;") in page
    assert "Cluster 2: columns that set it apart" in page
    assert "At most 128 of them count" in page
    assert "2,000" in page
    assert "<tag" not in page
    assert "column 64" not in page
