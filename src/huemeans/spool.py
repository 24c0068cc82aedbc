"""Rows that grow block by block and are read back in slices: in memory while small, else in an unnamed file.

The file lies in the folder for temporary files (``TMPDIR``), has no name and is gone when the process ends.
"""

import os
import tempfile
import weakref
from typing import IO, Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

IN_MEMORY: Final = 2**26
"""Bytes that are kept in memory."""


@runtime_checkable
class LazyTable(Protocol):
    """A table whose schema is known and whose rows are not read yet."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        ...

    @property
    def unit(self) -> str | None:
        """The column that says whose each row is."""
        ...

    @property
    def shape(self) -> tuple[None, int]:
        """An unknown number of rows, and the number of features."""
        ...

    def load(self) -> tuple["Spool", list[Any] | None]:
        """Read the rows, and each row's person if that is known."""
        ...


class Spool:
    """A table (n, d) of one dtype that can be appended to and sliced by rows, from any thread."""

    def __init__(self, width: int, dtype: Any, in_memory: int = IN_MEMORY) -> None:
        self.dtype = np.dtype(dtype)
        self._width, self._rows, self._in_memory = width, 0, in_memory
        self._blocks: list[NDArray[Any]] = []
        self._file: IO[bytes] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows, self._width

    def __len__(self) -> int:
        """Count the rows."""
        return self._rows

    def append(self, block: NDArray[Any]) -> None:
        """Add rows (m, d)."""
        rows = np.ascontiguousarray(block, dtype=self.dtype)
        self._rows += len(rows)
        if self._file is None:
            self._blocks.append(rows)
            if self._rows * self._width * self.dtype.itemsize > self._in_memory:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the spool
                weakref.finalize(self, self._file.close)
                for held in self._blocks:
                    held.tofile(self._file)
                self._blocks = []
        else:
            rows.tofile(self._file)

    def __getitem__(self, part: slice) -> NDArray[Any]:
        """Return the rows of a slice of step one."""
        start, stop, _ = part.indices(self._rows)
        if self._file is None:
            self._blocks = [np.concatenate(self._blocks)] if len(self._blocks) > 1 else self._blocks
            held = self._blocks[0] if self._blocks else np.empty((0, self._width), dtype=self.dtype)
            return held[start:stop]
        self._file.flush()
        row = self._width * self.dtype.itemsize
        content = bytearray()
        while len(content) < (stop - start) * row:
            more = os.pread(
                self._file.fileno(), (stop - start) * row - len(content), start * row + len(content)
            )
            if not more:
                raise OSError("the temporary file of the rows was cut short")
            content += more
        return np.frombuffer(content, dtype=self.dtype).reshape(stop - start, self._width)
