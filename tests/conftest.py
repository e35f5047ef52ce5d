"""Shared by all tests: small public worlds, and the list of estimators."""

import inspect
import os
import shutil
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

from sfumato import cluster
from sfumato.cluster import PrivateClusterer
from sfumato.domain import few_blocks
from sfumato.private.aggregates import splits
from sfumato.public.grid import synopsis


def all_estimators():
    """Every concrete estimator that `sfumato.cluster` exports."""
    exported = [getattr(cluster, name) for name in cluster.__all__]
    return [
        cls
        for cls in exported
        if inspect.isclass(cls) and issubclass(cls, PrivateClusterer) and not inspect.isabstract(cls)
    ]


ROOT = Path(__file__).parents[1]

settings.register_profile("sfumato", deadline=None)  # a timing never decides a test
settings.load_profile("sfumato")

# Of quick tests: few clusters, few cells, and tables so small that a guarantee may well be weak.
QUICK = {"n_clusters": 3, "bounds": (-1, 1), "max_cells": 25, "radius": 0.5, "min_samples": 20}
WEAK = pytest.mark.filterwarnings("ignore::sfumato.errors.GuaranteeWarning")

ONE = cluster.LloydKMeans  # speaks for all where the base class does the work
SLOW_PLACES = (  # beginnings of names of tests that `make test` leaves to `make test-all`
    "README.md",
    "docs/",
    "tests/audit/test_audit.py::test_the_person_has",
    "tests/audit/test_audit.py::test_the_same_seed",
    "tests/budget/test_calibration.py::test_one_count",
    "tests/cli/test_audit.py::test_a_broken_method",
    "tests/cli/test_demo.py",
    "tests/cli/test_plan_and_ledger.py::test_demo",
    "tests/cli/test_process.py",
    "tests/cluster/shared/test_deviations.py",
    "tests/cluster/test_dbscan.py::test_numbers_of_columns",
    "tests/cluster/test_density_tree.py::test_numbers_of_columns",
    "tests/cluster/test_dpm.py::TestClusters::test_n_clusters",
    "tests/cluster/test_dpm.py::TestClusters::test_separated",
    "tests/cluster/test_dpm_intervals.py",
    "tests/cluster/test_grid_kmeans.py::test_a_synopsis_answers",
    "tests/cluster/test_sandwich.py::test_the_check_has_power",
    "tests/cluster/test_sandwich.py::test_the_guarantee_holds_under_other",
    "tests/cluster/test_source_target.py::test_most_of_the_gap",
    "tests/contract/test_centres.py::test_with_much_budget",
    "tests/contract/test_control_flow.py::test_rows_in_files",
    "tests/contract/test_estimators.py::TestTables",
    "tests/contract/test_spend.py::test_the_accountant_itself",
    "tests/faults/",
    "tests/fuzz/",
    "tests/mutants/",
    "tests/private/sources/test_files.py::test_memory_does_not_grow",
)


def pytest_generate_tests(metafunc):
    """Run a test on every estimator. `make test` takes one for what the base class does."""
    if "estimator_class" not in metafunc.fixturenames:
        return
    of_base = metafunc.definition.get_closest_marker("of_base")
    metafunc.parametrize(
        "estimator_class",
        [
            pytest.param(cls, marks=[WEAK, pytest.mark.slow] if of_base and cls is not ONE else WEAK)
            for cls in all_estimators()
        ],
        ids=lambda cls: cls.__name__,
    )


def pytest_collection_modifyitems(items):
    """Leave to `make test-all` what runs on Spark, and folders that are slow as a whole."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or item.nodeid.startswith(SLOW_PLACES):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def one_thread_each():
    """Tables are tiny here: threads that wait for each other on a busy machine cost more than they bring."""
    with threadpool_limits(limits=1):
        yield


@pytest.fixture(autouse=True, scope="session")
def kernels_at_once():
    """Tests are about the kernels. That NumPy gives the same bits is tested for all of them together."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_blocks, "FEW_BLOCKS", 0)
        patch.setattr(splits, "MANY_SPLITS", 0)
        yield


@pytest.fixture
def rows():
    """Three blobs in [-1, 1]^2."""
    rng = np.random.default_rng(0)
    centers = np.array([[-0.6, -0.6], [0.6, -0.5], [0.0, 0.7]])
    return np.clip(centers[rng.integers(3, size=300)] + rng.normal(scale=0.08, size=(300, 2)), -1, 1)


@pytest.fixture
def make(estimator_class):
    """Make an estimator of the class under test, quick and with public bounds unless told otherwise."""

    def build(**parameters):
        known = inspect.signature(estimator_class).parameters
        return estimator_class(**{**{k: v for k, v in QUICK.items() if k in known}, **parameters})

    return build


@pytest.fixture
def quick(monkeypatch):
    """Denoise grids by projection, not by sampling, which is the slow part of a fit and costs no budget."""
    monkeypatch.setattr(synopsis, "affordable_sweeps", lambda *_: 0, raising=False)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A master and two workers of one core each. Rows, code and states really travel between processes."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is missing: pip install 'sfumato[spark]'")
    if not shutil.which("java") and "JAVA_HOME" not in os.environ:
        pytest.skip("Java is missing: Spark needs 17 or later")
    folder = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "spark.local.dir": str(folder),
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.task.maxFailures": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # pyspark does not know pandas 3 yet
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("sfumato tests")
        session = builder.config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("OFF")  # of workers that tests kill
        yield session
        application = session.sparkContext.applicationId
        session.stop()
    home = os.environ.get("SPARK_HOME", Path(sql.__file__).parents[1])
    shutil.rmtree(Path(home, "work", application), ignore_errors=True)  # no setting moves it
