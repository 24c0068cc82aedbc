"""Tables in files: their public schema, and their rows block by block.

Columns are chosen by name and read as numbers; a cell that is no number is missing, in CSV as in Parquet.
A categorical column has a public list of words and becomes a column of zeros and ones for each; a word that
is not in the list is in none.  Nothing is guessed from rows: a delimiter is told from the header line.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.ipc
from numpy.typing import NDArray
from pyarrow import parquet

from huemeans.checks import refuse
from huemeans.errors import HuemeansError, InvalidArgument
from huemeans.spool import Spool

Floats = NDArray[np.float64]
Progress = Callable[[float], None]
Loaded = TypeVar("Loaded")

CSV: Final = (".csv", ".tsv", ".txt")
PARQUET: Final = (".parquet", ".pq")
ARROW: Final = (".arrow", ".feather", ".ipc")

_DELIMITERS: Final = (",", ";", "\t", "|")
_DECIMALS: Final = (".", ",")
_MARKS: Final = (b"\x1f\x8b", b"PK\x03\x04", b"\xff\xfe", b"\xfe\xff", b"(\xb5/\xfd")
_BLOCK: Final = 2**23
_BATCH: Final = 2**15
_LONGEST_HEADER: Final = 2**20
_NUMBER: Final = r"^\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[iI][nN][fF])\s*$"


@dataclass(frozen=True)
class TableFile:
    """A table in a file or a folder of Parquet files, not read yet."""

    path: Path
    columns: tuple[str, ...]
    """The columns that are read, in order."""

    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unit: str | None = None
    """The column that says whose each row is."""

    delimiter: str = ","
    decimal: str = "."
    progress: Progress | None = None
    """Called with the share of the file that is read."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features: categorical columns have one for each word."""
        return tuple(
            name
            for column in self.columns
            for name in ([f"{column}={word}" for word in self.categories.get(column, ())] or [column])
        )

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        return None, len(self.names)

    def load(self) -> tuple[Spool, list[Any] | None]:
        """Read all rows; return them, and each row's person if there is a unit column.

        No cell raises.  What can is a file that is no table to its end, or a record of more than 8 MB.
        """
        return _unquoted(self._load, str(self.path))

    def _load(self) -> tuple[Spool, list[Any] | None]:
        rows = Spool(len(self.names), np.float64)
        people: list[Any] | None = None if self.unit is None else []
        for batch in self._batches():
            rows.append(np.column_stack([self._numbers(batch, name) for name in self.columns]))
            if people is not None and self.unit is not None:
                people += _identities(batch.column(self.unit))
        return rows, people

    def _numbers(self, batch: pa.RecordBatch, column: str) -> Floats:
        values = batch.column(column)
        if column in self.categories:
            words = _as_words(values)
            found = [
                pc.fill_null(pc.equal(words, word), fill_value=False) for word in self.categories[column]
            ]
            return np.stack([one.to_numpy(zero_copy_only=False).astype(np.float64) for one in found], axis=1)
        numbers = _as_floats(values, self.decimal)
        return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)[:, None]

    def _batches(self) -> Iterator[pa.RecordBatch]:
        wanted = list(dict.fromkeys([*self.columns, *([self.unit] if self.unit else [])]))
        yield from _READERS[_kind(self.path)](self, wanted)

    def _told(self, share: float) -> None:
        if self.progress is not None:
            self.progress(min(share, 1.0))


def _unquoted(load: Callable[[], Loaded], name: str) -> Loaded:
    """Load a table; what fails is told without its text, which may quote a row."""
    try:
        return load()
    except (HuemeansError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  # its text may quote the file
        failed = True
    if failed:  # outside the handler, so that nothing is chained
        raise InvalidArgument(
            f"{name} cannot be read to its end: it is damaged, a quote in it is never closed, or "
            "there is no room for temporary files. Nothing was released; what was entered in a ledger is "
            "spent."
        )
    raise AssertionError


@dataclass(frozen=True, eq=False)
class ArrowTable:
    """An Arrow table or dataset of numbers, not read yet."""

    table: Any
    names: tuple[str, ...]
    unit: None = None

    @classmethod
    def of(cls, table: Any) -> "ArrowTable":
        """Take a table, a batch or a dataset, or refuse it by its schema."""
        odd = [one.name for one in table.schema if not holds_numbers(one.type)]
        if odd or not table.schema.names:
            refuse("X", f"<columns {odd[:8]}>", "numeric columns", "Encode words as numbers")
        return cls(table, tuple(table.schema.names))

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        return None, len(self.names)

    def load(self) -> tuple[Spool, None]:
        """Read all rows, batch by batch; no cell raises in words of its own."""
        return _unquoted(self._load, "the Arrow table"), None

    def _load(self) -> Spool:
        rows = Spool(len(self.names), np.float64)
        for batch in [self.table] if isinstance(self.table, pa.RecordBatch) else self.table.to_batches():
            rows.append(columns_of(batch))
        return rows


def open_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    categories: Mapping[str, Sequence[str]] | None = None,
    unit: str | None = None,
    delimiter: str | None = None,
    decimal: str = ".",
    progress: Progress | None = None,
) -> TableFile:
    """Read the schema of a table and choose its columns; no row is read.

    ``columns`` are all but ``unit`` if not given.
    """
    place = Path(path)
    if not place.exists():
        raise InvalidArgument(f"{place} is not there. Give a file or a folder of Parquet files.")
    if decimal not in _DECIMALS or decimal == delimiter:
        raise InvalidArgument(
            f"decimal={decimal!r} is not valid: expected '.' or ',', other than the delimiter."
        )
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise InvalidArgument(f"delimiter={delimiter!r} is not valid: expected one letter, like ';'.")
    _check_readable(place)
    mark = delimiter or (_told_delimiter(place) if _kind(place) == "csv" else ",")
    words = {name: tuple(listed) for name, listed in (categories or {}).items()}
    header = _header(place, mark)
    numbers = header if _kind(place) == "csv" else _check_types(place, set(columns or ()) - set(words))
    chosen = tuple(columns or [name for name in header if name != unit and name in {*numbers, *words}])
    _check_columns(place, header, chosen, {*words, *([unit] if unit else ())})
    return TableFile(place, chosen, words, unit, mark, decimal, progress)


def _check_columns(path: Path, header: list[str], chosen: tuple[str, ...], others: set[str]) -> None:
    """Refuse what the header does not allow; only the header is quoted."""
    used = {*chosen, *others}
    missing = sorted(used - set(header))
    twice = sorted({name for name in used if header.count(name) > 1 or chosen.count(name) > 1})
    if not header or not chosen:
        raise InvalidArgument(f"{path} has no columns. Its first line must name them.")
    if missing:
        raise InvalidArgument(f"{path} has no column {missing}. Its first line, or its schema, names others.")
    if "" in used:
        raise InvalidArgument(f"{path} has a column without a name. Choose columns with --columns.")
    if twice:
        raise InvalidArgument(f"{path} has several columns named {twice}. Rename them, or choose others.")


def _check_readable(path: Path) -> None:
    """Refuse what is no text where text is expected, and Parquet files of different columns."""
    if _kind(path) == "csv":
        with path.open("rb") as file:
            start = file.read(4)
        if start.startswith(_MARKS):
            raise InvalidArgument(f"{path} is compressed or no UTF-8. Unpack it, or save it as UTF-8.")


def _check_types(path: Path, chosen: set[str]) -> list[str]:
    """Return the columns that hold numbers; refuse chosen ones that cannot, and files that differ."""
    if _kind(path) == "arrow":
        schemas = [_open_ipc(path).schema]
    else:
        schemas = [parquet.read_schema(file) for file in _parquet_files(path)]
    if any(set(schema.names) != set(schemas[0].names) for schema in schemas):
        raise InvalidArgument(f"{path} has Parquet files with different columns.")
    odd = sorted(
        name for name in chosen & set(schemas[0].names) if not _may_be_numbers(schemas[0].field(name).type)
    )
    if odd:
        raise InvalidArgument(f"{path} has no numbers in {odd}: dates, lists or bytes. Choose other columns.")
    return [one.name for one in schemas[0] if holds_numbers(one.type)]


def holds_numbers(kind: Any) -> bool:
    """Tell whether a column of this Arrow type holds numbers."""
    return _may_be_numbers(kind) and not _is_text(kind)


def columns_of(table: Any) -> Floats:
    """Return an Arrow table or batch of numbers as rows of float64, (n, d)."""
    return np.column_stack([_as_floats(one, ".").to_numpy(zero_copy_only=False) for one in table.columns])


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _may_be_numbers(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        return _may_be_numbers(kind.value_type)
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(plain or pa.types.is_boolean(kind) or _is_text(kind))


def _kind(path: Path) -> str:
    if path.is_dir() or path.suffix.lower() in PARQUET:
        return "parquet"
    if path.suffix.lower() in ARROW:
        return "arrow"
    if path.suffix.lower() in CSV:
        return "csv"
    raise InvalidArgument(
        f"{path} is of no kind that is read: {', '.join((*CSV, *PARQUET, *ARROW))} or a folder of Parquet."
    )


def _first_line(path: Path) -> str:
    """Return the header, which may have newlines in quotes, with the newline that ends it."""
    with path.open("rb") as file:
        start = file.read(_LONGEST_HEADER).decode("utf-8-sig", errors="replace")
    quoted = False
    for at, letter in enumerate(start):
        quoted ^= letter == '"'
        if letter in "\r\n" and not quoted:
            return start[: at + 1]
    return start


def _told_delimiter(path: Path) -> str:
    """Return the delimiter that is in the header most often, outside quotes."""
    plain = "".join(_first_line(path).split('"')[::2])
    return max(_DELIMITERS, key=plain.count)


def _header(path: Path, delimiter: str) -> list[str]:
    try:
        if _kind(path) == "csv":
            rows = list(csv.reader([_first_line(path).rstrip("\r\n")], delimiter=delimiter))
            return _named([name.strip() for name in rows[0]], path) if rows else []
        if _kind(path) == "arrow":
            return list(_open_ipc(path).schema.names)
        return list(parquet.read_schema(_parquet_files(path)[0]).names)
    except (pa.ArrowException, OSError, csv.Error):
        failed = True
    if failed:
        raise InvalidArgument(f"{path} cannot be read: it is not what its name says.")
    return []


def _named(header: list[str], path: Path) -> list[str]:
    """Return the header, or refuse numbers in its place: names are published, and these would be a row's."""
    if header and all(re.fullmatch(_NUMBER, name) for name in header):
        raise InvalidArgument(f"{path} has numbers in its first line. It must name the columns.")
    return header


def _parquet_files(path: Path) -> list[Path]:
    found = (
        sorted(file for file in path.rglob("*") if file.suffix.lower() in PARQUET)
        if path.is_dir()
        else [path]
    )
    if not found:
        raise InvalidArgument(f"{path} has no Parquet files in it.")
    return found


def _read_csv(table: TableFile, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    header = _header(table.path, table.delimiter)
    if not _first_line(table.path).endswith(("\r", "\n")):
        return  # nothing follows the header
    names = [f"column {at}" for at in range(len(header))]  # ours: theirs may stand twice
    size = max(table.path.stat().st_size, 1)
    with table.path.open("rb") as file:
        reader = arrow_csv.open_csv(
            file,
            read_options=arrow_csv.ReadOptions(
                column_names=names, skip_rows_after_names=1, block_size=_BLOCK
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=table.delimiter,
                newlines_in_values=True,
                ignore_empty_lines=True,
                invalid_row_handler=lambda _: "skip",
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[names[header.index(name)] for name in wanted],
                check_utf8=False,
                strings_can_be_null=False,
            ),
        )
        for batch in reader:
            table._told(file.tell() / size)  # noqa: SLF001  # our own
            yield pa.RecordBatch.from_arrays(batch.columns, names=wanted)


def _read_parquet(table: TableFile, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    files = _parquet_files(table.path)
    for at, path in enumerate(files):
        with parquet.ParquetFile(path) as file:
            groups = max(file.num_row_groups, 1)
            for group in range(file.num_row_groups):
                for batch in file.iter_batches(_BATCH, row_groups=[group], columns=wanted):
                    yield batch.select(wanted)
                table._told((at + (group + 1) / groups) / len(files))  # noqa: SLF001


def _open_ipc(path: Path) -> Any:
    source = pa.memory_map(str(path))
    try:
        return pyarrow.ipc.open_file(source)
    except pa.ArrowInvalid:
        return pyarrow.ipc.open_stream(pa.memory_map(str(path)))


def _read_arrow(table: TableFile, wanted: list[str]) -> Iterator[pa.RecordBatch]:
    reader = _open_ipc(table.path)
    total = getattr(reader, "num_record_batches", None)
    batches = (reader.get_batch(at) for at in range(total)) if total is not None else iter(reader)
    for at, batch in enumerate(batches):
        yield batch.select(wanted)
        table._told((at + 1) / total if total else 0.0)  # noqa: SLF001


_READERS: Final[dict[str, Callable[[TableFile, list[str]], Iterator[pa.RecordBatch]]]] = {
    "csv": _read_csv,
    "parquet": _read_parquet,
    "arrow": _read_arrow,
}


def _as_floats(values: Any, decimal: str) -> Any:
    """Return a column as float64; what is no number is null, which numpy shows as NaN."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _as_floats(values.dictionary_decode(), decimal)
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind) or pa.types.is_integer(kind):
        return pc.cast(values, pa.float64(), safe=False)
    if pa.types.is_floating(kind):
        return pc.cast(values, pa.float64())
    if pa.types.is_large_string(kind):
        values = pc.cast(values, pa.string())
        kind = values.type
    if not pa.types.is_string(kind):
        return pa.nulls(len(values), pa.float64())
    plain = values if decimal == "." else pc.replace_substring(values, decimal, ".")
    right = pc.match_substring_regex(plain, pattern=_NUMBER)
    kept = pc.if_else(pc.fill_null(right, fill_value=False), plain, pa.scalar(None, pa.string()))
    return pc.cast(pc.utf8_trim_whitespace(kept), pa.float64())


def _as_words(values: Any) -> Any:
    """Return a column as words without spaces around them, whatever their bytes are."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _as_words(values.dictionary_decode())
    if pa.types.is_binary(kind):
        return pc.ascii_trim_whitespace(values.view(pa.string()))
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _as_words(values.cast(pa.binary()))
    if pa.types.is_nested(kind):
        return pa.nulls(len(values), pa.string())
    return pc.ascii_trim_whitespace(values if pa.types.is_string(kind) else values.cast(pa.string()))


def _identities(values: Any) -> list[Any]:
    """Return whose each row is: trimmed text as bytes, times as numbers; empty text is nobody."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _identities(values.dictionary_decode())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _identities(values.cast(pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()))
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return [None if cell is None else cell.strip() or None for cell in values.to_pylist()]
    if pa.types.is_temporal(kind):
        return list(values.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())  # noqa: PLR2004
    if pa.types.is_nested(kind):
        raise InvalidArgument(
            "the unit column holds lists or structures. Choose a column of words or numbers."
        )
    return list(values.to_pylist())
