"""The same table from anywhere gives the same integers, and parts that fail are never counted twice."""

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import dataset, parquet

from huemeans import HuemeansError, InvalidArgument, Ledger, PrivacyUnit, PrivateKMeans
from huemeans.testing import seeded_noise

NAMES = ["age", "income", "visits"]
OPTIONS = {"epsilon": 2.0, "delta": 1e-6, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    """Return clusters with missing cells, odd values and a feature far from zero."""
    rng = np.random.default_rng(5)
    table = rng.normal(size=(6000, 3)) + np.repeat([[0, 1000, 0], [9, 1003, 5], [0, 1009, -5]], 2000, axis=0)
    table[::97, 1] = np.nan
    table[5, 2], table[6, 0] = 1e30, -1e30
    return rng.permutation(table)


def fitted(X, **options):
    """Fit with the same noise each time; return all released numbers."""
    with seeded_noise(7):
        model = PrivateKMeans(3, **(OPTIONS | options)).fit(X)
    return np.concatenate(
        [model.cluster_centers_.ravel(), model.cluster_sizes_, model.bounds_.ravel(), model.summary_.counts]
    )


@pytest.fixture(scope="module")
def expected(rows):
    """Return what the array gives, with public and with learned bounds."""
    return {bounds: fitted(rows, bounds=limits) for bounds, limits in BOUNDS.items()}


BOUNDS = {"public": [[-5, 990, -10], [15, 1020, 10]], "learned": "private"}


def frame(rows):
    """Return the rows as a frame of pandas."""
    return pd.DataFrame(rows, columns=NAMES)


def parquet_file(rows, path, groups):
    """Write the rows as Parquet of small row groups."""
    parquet.write_table(pa.table(frame(rows)), path, row_group_size=groups)
    return path


FORMS = {
    "Fortran order": lambda rows, _: np.asfortranarray(rows),
    "shuffled": lambda rows, _: np.random.default_rng(1).permutation(rows),
    "pandas": lambda rows, _: frame(rows),
    "polars": lambda rows, _: pl.DataFrame(frame(rows)),
    "Arrow table": lambda rows, _: pa.table(frame(rows)),
    "Arrow dataset": lambda rows, at: dataset.dataset(parquet_file(rows, at / "d.parquet", 512)),
    "Parquet path": lambda rows, at: parquet_file(rows, at / "p.parquet", 700),
    "Parquet path, as text": lambda rows, at: str(parquet_file(rows, at / "s.parquet", 6000)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_form_of_a_table_gives_the_same_release(form, bounds, rows, expected, tmp_path):
    """Bit by bit, with seeded noise; with public and with learned bounds."""
    found = fitted(FORMS[form](rows, tmp_path), bounds=BOUNDS[bounds])
    np.testing.assert_array_equal(expected[bounds], found)


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int8, np.int64, np.uint16, bool])
def test_any_number_type_is_read_as_it_is(kind):
    """What is exact in it gives what its float64 gives."""
    table = (np.random.default_rng(0).normal(size=(900, 3)) * 2 + 5).astype(kind)
    expected = fitted(table.astype(np.float64), bounds=(-10, 20))
    np.testing.assert_array_equal(expected, fitted(table, bounds=(-10, 20)))


NULLABLE = {
    "pandas Int64": lambda cells: pd.DataFrame({"a": pd.array(cells, dtype="Int64"), "b": 1.0}),
    "pandas boolean": lambda cells: pd.DataFrame({"a": pd.array(cells, dtype="boolean"), "b": 1.0}),
    "pandas of Arrow": lambda cells: pd.DataFrame({"a": pd.array(cells, dtype="int64[pyarrow]"), "b": 1.0}),
    "polars Int64": lambda cells: pl.DataFrame({"a": pl.Series(cells, dtype=pl.Int64), "b": 1.0}),
    "polars Boolean": lambda cells: pl.DataFrame(
        {"a": pl.Series(map(_true, cells), dtype=pl.Boolean), "b": 1.0}
    ),
    "Arrow bool": lambda cells: pa.table({"a": pa.array(map(_true, cells), pa.bool_()), "b": [1.0] * 4}),
}


def _true(cell):
    return None if cell is None else bool(cell)


@pytest.mark.parametrize("kind", NULLABLE)
def test_a_missing_cell_is_answered_as_any_other(kind):
    """The schema decides whether a table is taken, not whether a cell of it is missing."""
    for cells, floats in (([0, 1, 1, 0], [0, 1, 1, 0]), ([None, 1, 1, 0], [np.nan, 1, 1, 0])):
        expected = fitted(np.column_stack([floats, np.ones(4)]), bounds=(0, 1))
        np.testing.assert_array_equal(expected, fitted(NULLABLE[kind](cells), bounds=(0, 1)))


def test_a_missing_cell_in_a_part_of_a_dask_frame_is_answered_too():
    """Types of pandas that know of missing cells, in parts."""
    dd = pytest.importorskip("dask.dataframe")
    table = dd.from_pandas(NULLABLE["pandas Int64"]([None, 1, 1, 0]), npartitions=2)
    expected = fitted(np.column_stack([[np.nan, 1, 1, 0], np.ones(4)]), bounds=(0, 1))
    np.testing.assert_array_equal(expected, fitted(table, bounds=(0, 1)))


def test_columns_may_have_any_name():
    """Also those of what a table in parts or in a file can do."""
    table = np.random.default_rng(0).random((50, 5))
    named = pd.DataFrame(table, columns=["names", "total", "unit", "load", "shape"])
    np.testing.assert_array_equal(fitted(table, bounds=(0, 1)), fitted(named, bounds=(0, 1)))


def test_a_dataset_that_fails_does_not_quote_its_cells(tmp_path):
    """A CSV dataset whose later cell is no number."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 300_000 + "Ada,3\n")
    with pytest.raises(InvalidArgument, match=r"^the Arrow table cannot be read to its end") as caught:
        fitted(dataset.dataset(path, format="csv"), bounds=(0, 9))
    assert "Ada" not in str(caught.value)
    assert caught.value.__context__ is None


def test_what_can_be_read_once_only_is_refused_with_the_reason(rows):
    """A reader of batches, and a generator."""
    for given in (pa.table(frame(rows)).to_reader(), iter(rows)):
        with pytest.raises(InvalidArgument, match=r"can be read again, for a fit reads it several times"):
            fitted(given, bounds=(-5, 15))


def test_words_in_an_arrow_table_are_refused_by_its_schema():
    """No cell is quoted."""
    with pytest.raises(InvalidArgument, match=r"^X=<columns \['name'\]> .* numeric columns"):
        fitted(pa.table({"x": [1.0], "name": ["Ada"]}), bounds=(0, 1))


@pytest.fixture(scope="module")
def client():
    """Return a Dask cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parts", [1, 7, 40])
def test_dask_with_two_workers_gives_the_same_release(client, parts, rows, expected):
    """In any partitioning, as frame and as array, with public and with learned bounds."""
    import dask.array as da  # noqa: PLC0415
    import dask.dataframe as dd  # noqa: PLC0415

    assert len(client.scheduler_info()["workers"]) == 2
    table = dd.from_pandas(frame(rows), npartitions=parts, sort=False)
    for bounds, limits in BOUNDS.items():
        np.testing.assert_array_equal(expected[bounds], fitted(table, bounds=limits))
    array = da.from_array(rows, chunks=(6000 // parts + 1, 2))
    np.testing.assert_array_equal(expected["public"], fitted(array, bounds=BOUNDS["public"]))


def dying(block, mark):
    """Kill the process that reads this part, the first time."""
    if not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def raising(block):
    """Fail with a row in the message."""
    raise ValueError(f"bad row: {block[:1]}")


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_that_dies_in_a_pass_changes_nothing(client, rows, expected, tmp_path):
    """The pass is done again where it was lost: the same integers, nothing counted twice."""
    import dask.array as da  # noqa: PLC0415

    mark = tmp_path / "died"
    array = da.from_array(rows, chunks=(500, 3)).map_blocks(
        dying, str(mark), dtype=float, meta=np.empty((0, 0))
    )
    np.testing.assert_array_equal(expected["public"], fitted(array, bounds=BOUNDS["public"]))
    assert mark.exists()
    client.wait_for_workers(2)


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
def test_a_part_that_raises_is_a_clear_error_without_its_rows(client, rows, tmp_path):
    """Nothing is released, the entry in the ledger stays, and no row is quoted."""
    import dask.array as da  # noqa: PLC0415

    assert client
    ledger = Ledger(tmp_path / "privacy.ledger")
    ledger.open_dataset("shop", epsilon=3.0, delta=1e-6, unit=PrivacyUnit("add-remove"))
    array = da.from_array(rows, chunks=(500, 3)).map_blocks(raising, dtype=float, meta=np.empty((0, 0)))
    model = PrivateKMeans(3, bounds=(-5, 15), ledger=ledger, dataset="shop", epsilon=1.0)
    with pytest.raises(HuemeansError, match=r"a part of the table could not be read") as caught:
        model.fit(array)
    assert "bad row" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert not hasattr(model, "cluster_centers_")
    assert len([entry for entry in ledger.entries() if entry.kind == "release"]) == 1


def test_tables_of_words_in_dask_are_refused_by_their_schema():
    """And so are arrays of another shape, and a person beside them."""
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    words = dd.from_pandas(pd.DataFrame({"x": [1.0], "name": ["Ada"]}), npartitions=1)
    with pytest.raises(InvalidArgument, match=r"^X=<columns \['name'\]>"):
        fitted(words, bounds=(0, 1))
    with pytest.raises(InvalidArgument, match=r"^X=<Dask array of float64 in 1 dimensions>"):
        fitted(da.ones(5), bounds=(0, 1))
    with pytest.raises(InvalidArgument, match=r"^person=<given> .* no person beside a Dask or Spark table"):
        PrivateKMeans(2, bounds=(0, 1), max_rows_per_person=2).fit(da.ones((5, 2)), person=[1] * 5)


@pytest.fixture(scope="module")
def spark():
    """Return a Spark session on a local cluster of two executors in processes of their own."""
    session = pytest.importorskip("pyspark.sql").SparkSession
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17 or later, and there is none")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    built = (
        session.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    yield built
    built.stop()


@pytest.mark.engines
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parts", [1, 9])
def test_spark_on_a_local_cluster_gives_the_same_release(spark, parts, rows, expected, tmp_path):
    """In any partitioning, from a frame and from Parquet, with public and with learned bounds."""
    table = spark.createDataFrame(frame(rows)).repartition(parts)
    for bounds, limits in BOUNDS.items():
        np.testing.assert_array_equal(expected[bounds], fitted(table, bounds=limits))
    path = parquet_file(rows, tmp_path / "s.parquet", 1000)
    np.testing.assert_array_equal(
        expected["public"], fitted(spark.read.parquet(str(path)), bounds=BOUNDS["public"])
    )
