"""Tables in files: the right numbers or a clear error, whatever CSV brings; nothing guessed from rows."""

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from pyarrow import parquet

from huemeans import InvalidArgument, PrivateKMeans
from huemeans.sources import open_table
from huemeans.spool import Spool

NAN = float("nan")


def read(path, **options):
    """Return the columns and the rows of a table."""
    table = open_table(path, **options)
    rows, people = table.load()
    return list(table.names), rows[:].tolist(), people


def same(expected, actual):
    """Compare rows in which NaN equals NaN."""
    np.testing.assert_array_equal(np.array(expected, dtype=float).reshape(np.shape(actual)), np.array(actual))


CASES = {
    "plain": (b"a,b\n1,2\n3,4\n", {}, [[1, 2], [3, 4]]),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", {}, [[1, 2]]),
    "semicolons": (b"a;b\n1;2\n", {}, [[1, 2]]),
    "tabs": (b"a\tb\n1\t2\n", {}, [[1, 2]]),
    "carriage returns": (b"a,b\r\n1,2\r\n", {}, [[1, 2]]),
    "no newline at the end": (b"a,b\n1,2", {}, [[1, 2]]),
    "quoted newlines": (b'a,b,c\n"1","x\ny","3"\n4,5,6\n', {}, [[1, NAN, 3], [4, 5, 6]]),
    "a quoted newline in the header": (b'"a\nb",c\n1,2\n', {}, [[1, 2]]),
    "a quoted delimiter in the header": (b'"a;b";c\n1;2\n', {}, [[1, 2]]),
    "decimal commas": (b"a;b\n1,5;-2,25\n", {"decimal": ","}, [[1.5, -2.25]]),
    "decimal commas not told": (b"a;b\n1,5;2\n", {}, [[NAN, 2]]),
    "empty cells": (b"a,b\n,2\n1,\n,\n", {}, [[NAN, 2], [1, NAN], [NAN, NAN]]),
    "empty lines": (b"a,b\n\n1,2\n\n", {}, [[1, 2]]),
    "mixed types": (b"a,b\n1,x\ntrue,2\nNA,1e3\n0x1,nan\n", {}, [[1, NAN], [NAN, 2], [NAN, 1e3], [NAN] * 2]),
    "spaces": (b"a, b\n 1 , 2\n", {}, [[1, 2]]),
    "huge and tiny": (b"a,b\n1e999,-1e999\n1e-999,inf\n", {}, [[np.inf, -np.inf], [0, np.inf]]),
    "no UTF-8": (b"a,b\n\xff\xfe,2\n1,\xe9\n", {}, [[NAN, 2], [1, NAN]]),
    "a row too short and one too long": (b"a,b\n1\n1,2\n1,2,3\n", {}, [[1, 2]]),
    "no rows": (b"a,b\n", {}, []),
    "no rows and no newline": (b"a,b", {}, []),
    "one row": (b"a,b\n1,2\n", {}, [[1, 2]]),
    "duplicate columns not chosen": (b"a,b,b,c\n1,2,3,4\n", {"columns": ["a", "c"]}, [[1, 4]]),
    "unnamed columns not chosen": (b",a,\n1,2,3\n", {"columns": ["a"]}, [[2]]),
    "columns in another order": (b"a,b\n1,2\n", {"columns": ["b", "a"]}, [[2, 1]]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_csv_brings_is_read_right(tmp_path, name):
    """Encodings, delimiters, quotes, decimals, odd cells, odd rows."""
    content, options, expected = CASES[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    same(expected, read(path, **options)[1])


ERRORS = {
    "nothing": (b"", {}, "no columns"),
    "no header": (b"61234,5\n7,8\n", {}, "numbers in its first line. It must name the columns"),
    "duplicate columns": (b"a,b,b\n1,2,3\n", {}, r"several columns named \['b'\]"),
    "unnamed columns": (b"a,,c\n1,2,3\n", {}, "without a name"),
    "an unknown column": (b"a,b\n1,2\n", {"columns": ["a", "z"]}, r"no column \['z'\]"),
    "a column twice": (b"a,b\n1,2\n", {"columns": ["a", "a"]}, "several columns"),
    "an unknown unit": (b"a,b\n1,2\n", {"unit": "who"}, r"no column \['who'\]"),
    "a comma for both": (b"a,b\n1,2\n", {"decimal": ",", "delimiter": ","}, "delimiter"),
    "words for no column": (b"a,b\n1,2\n", {"categories": {"z": ["x"]}}, r"no column \['z'\]"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_read_is_a_clear_error(tmp_path, name):
    """From the header alone: no cell is quoted."""
    content, options, message = ERRORS[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidArgument, match=message):
        open_table(path, **options)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("t", pa.array([0, 2**62, None], pa.timestamp("us"))),
        ("t", pa.array([0, 1, None], pa.timestamp("ns"))),
        ("t", pa.array([b"a", b"\xff", None])),
        ("t", pa.array([[1], [2], None])),
        ("t", pa.array([1, 2, None], pa.date32())),
    ],
)
def test_no_cell_of_a_columnar_file_raises(tmp_path, column, values):
    """Far dates, odd bytes, lists: as a word, as whose the row is; as numbers they are refused by schema."""
    path = tmp_path / "table.parquet"
    parquet.write_table(pa.table({column: values, "x": pa.array([1, 2, 3])}), path)
    with pytest.raises(InvalidArgument, match="dates, lists or bytes"):
        read(path, columns=["t", "x"])
    assert read(path)[0] == ["x"]
    assert len(read(path, columns=["t"], categories={"t": ["a"]})[1]) == 3
    if pa.types.is_nested(values.type):
        with pytest.raises(InvalidArgument, match="lists"):
            read(path, columns=["x"], unit="t")
    else:
        people = read(path, columns=["x"], unit="t")[2]
        assert people[2] is None
        assert len(set(people)) == 3


def test_whose_a_row_is_may_be_any_bytes_and_nothing_is_nobody(tmp_path):
    """Latin-1 names, spaces around them, empty cells."""
    path = tmp_path / "table.csv"
    path.write_bytes(b"x,who\n1,M\xfcller\n2, M\xfcller \n3,\n4,  \n5,cat\n")
    _, rows, people = read(path, columns=["x", "who"], unit="who", categories={"who": ["cat"]})
    assert people == [b"M\xfcller", b"M\xfcller", None, None, b"cat"]
    assert [row[1] for row in rows] == [0, 0, 0, 0, 1]


def test_people_beside_a_file_are_refused(tmp_path):
    """They would be ignored: the file's own column says whose its rows are."""
    path = tmp_path / "table.csv"
    path.write_text("x\n1\n2\n")
    with pytest.raises(InvalidArgument, match="unit"):
        PrivateKMeans(1, bounds=(0, 3)).fit(open_table(path), person=[1, 2])


def test_a_quote_that_is_never_closed_is_an_error_that_quotes_nothing(tmp_path):
    """Or the rest of the file is one odd row; in neither case does a cell show."""
    path = tmp_path / "table.csv"
    path.write_bytes(b'a,b\n1,2\n"61234,5\n' + b"7,8\n" * 3_000_000)
    try:
        same([[1, 2]], read(path)[1])
        words = ""
    except InvalidArgument as error:
        words = str(error)
    assert "61234" not in words


def test_words_become_columns_of_zeros_and_ones(tmp_path):
    """A word that is not in the public list is in none of them."""
    path = tmp_path / "table.csv"
    path.write_text("a,who\n1,cat\n2, dog \n3,bird\n4,\n")
    names, rows, _ = read(path, categories={"who": ("cat", "dog")})
    assert names == ["a", "who=cat", "who=dog"]
    same([[1, 1, 0], [2, 0, 1], [3, 0, 0], [4, 0, 0]], rows)


def columnar():
    """Return a table with columns of many types."""
    return pa.table(
        {
            "i": pa.array([1, None, 3], pa.int64()),
            "f": pa.array([1.5, float("nan"), None], pa.float32()),
            "s": pa.array(["7", "x", None]),
            "b": pa.array([True, False, None]),
            "c": pa.array(["cat", "dog", "cat"]).dictionary_encode(),
            "d": pa.array([10, 20, 30], pa.decimal128(10, 2)),
            "t": pa.array([0, 1, 2], pa.timestamp("s")),
        }
    )


EXPECTED = [
    [1, 1.5, 7, 1, 1, 0, 10], [NAN, NAN, NAN, 0, 0, 1, 20], [3, NAN, NAN, NAN, 1, 0, 30],
]  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "arrow", "feather", "stream", "folder"])
def test_columnar_files_are_read_as_numbers(tmp_path, kind):
    """Parquet, Arrow's file and stream formats, Feather, and a folder of Parquet files in parts."""
    path, table = tmp_path / f"table.{'arrow' if kind == 'stream' else kind}", columnar()
    if kind == "folder":
        (path / "year=1").mkdir(parents=True)
        parquet.write_table(table.slice(0, 1), path / "year=1" / "a.parquet")
        parquet.write_table(table.slice(1), path / "b.parquet")
        (path / "_SUCCESS").touch()
    elif kind == "parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
    else:
        sink = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with sink(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    _, rows, people = read(path, categories={"c": ("cat", "dog")}, columns=list("ifsbcd"), unit="s")
    found = sorted(zip(rows, people, strict=True), key=lambda pair: pair[0][6])
    same(EXPECTED, [row for row, _ in found])
    assert [person for _, person in found] == [b"7", b"x", None]


def test_other_files_are_refused(tmp_path):
    """By their names, and where they are not what their names say."""
    for name, content, message in (
        ("a.xlsx", b"", "no kind that is read"), ("a.parquet", b"PAR1", "not what its name says"),
        ("a.arrow", b"text", "not what its name says"),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InvalidArgument, match=message):
            open_table(tmp_path / name)
    for content in (b"\x1f\x8b\x08\x00", "a,b\n1,2\n".encode("utf-16")):
        (tmp_path / "a.csv").write_bytes(content)
        with pytest.raises(InvalidArgument, match="compressed or no UTF-8"):
            open_table(tmp_path / "a.csv")
    (tmp_path / "parts").mkdir()
    parquet.write_table(pa.table({"a": [1]}), tmp_path / "parts" / "1.parquet")
    parquet.write_table(pa.table({"b": [1]}), tmp_path / "parts" / "2.parquet")
    with pytest.raises(InvalidArgument, match="different columns"):
        open_table(tmp_path / "parts")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidArgument, match="no Parquet files"):
        open_table(tmp_path / "empty")
    with pytest.raises(InvalidArgument, match="not there"):
        open_table(tmp_path / "none.csv")


def test_progress_is_told_in_shares(tmp_path):
    """Growing, from above nothing to the whole."""
    path, told = tmp_path / "table.csv", []
    path.write_text("a,b\n" + "1,2\n" * 12_000_000)
    open_table(path, progress=told.append).load()
    assert told == sorted(told)
    assert len(told) > 1
    assert told[-1] == 1.0


@pytest.mark.parametrize("in_memory", [0, 100, 10**6])
def test_a_spool_gives_back_what_was_appended(in_memory):
    """Whether it lies in memory or in a file, in any slices."""
    rng = np.random.default_rng(0)
    blocks = [rng.integers(-9, 9, size=(n, 3)).astype(np.int32) for n in (5, 0, 1, 40)]
    spool = Spool(3, np.int32, in_memory)
    assert spool[:].shape == (0, 3)
    for block in blocks:
        spool.append(block)
    whole = np.vstack(blocks)
    assert spool.shape == whole.shape
    for part in (slice(None), slice(0, 7), slice(5, 6), slice(40, 100), slice(60, 70)):
        np.testing.assert_array_equal(whole[part], spool[part])


@pytest.mark.parametrize("bounds", [(-5, 5), "private"])
def test_a_fit_of_a_file_is_the_fit_of_its_rows(tmp_path, monkeypatch, bounds):
    """The same numbers with the same noise, in memory and on disk, with people and without."""
    monkeypatch.setattr("huemeans.spool.IN_MEMORY", 1000)
    from huemeans.testing import seeded_noise  # noqa: PLC0415

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3000, 2)).round(3)
    rows[5, 1] = NAN
    people = rng.integers(0, 800, size=3000)
    path = tmp_path / "table.csv"
    lines = [f"{a},{b},{who}" for (a, b), who in zip(rows, people, strict=True)]
    path.write_text("x,y,who\n" + "\n".join(lines).replace("nan", "") + "\n")
    for unit in (None, "who"):
        model = PrivateKMeans(3, bounds=bounds, random_state=0, missing="drop", max_rows_per_person=2)
        with seeded_noise(1):
            first = model.fit(rows, person=None if unit is None else people).cluster_centers_.copy()
            second = model.fit(open_table(path, columns=["x", "y"], unit=unit)).cluster_centers_
        np.testing.assert_array_equal(first, second)
        assert ("promise" in str(model.guarantee_)) == (unit is None)
        assert list(model.feature_names_in_) == ["x", "y"]
