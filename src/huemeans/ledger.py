"""Privacy budgets that outlive the process: an append-only, hash-chained ledger in one SQLite file.

A data set gets a budget (epsilon, delta) once.  Every release of it must be entered before its first row is
read, and is refused if all releases together would pass the budget.  They compose as Gaussian differential
privacy, discreteness included: mu^2, the draws N and their sum S of 1/s^2 add up, and the whole must satisfy
real_delta(mu, epsilon, N, S) <= delta (Theorem D).  So two releases cost sqrt(2) times one, not twice.

Guarantees (each has a test of its name):

* what was accepted never adds up to more than the budget, however many processes ask at once;
* an entry that was accepted is on disk before ``reserve`` returns, and stays: what happens after it, a crash
  or a kill, counts as spent;
* SQL that changes or removes an entry is refused, and a byte that changes in any row is found.  Whoever owns
  the file can cut entries off its end: ``huemeans verify RELEASE --ledger`` finds that for published ones;
* costs are integers, rounded up.
"""

import fcntl
import hashlib
import json
import math
import os
import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from huemeans import checks
from huemeans.budget import sqrt_up
from huemeans.calibrate import epsilon_at
from huemeans.discretization import Draws, largest_mu, real_delta
from huemeans.errors import BudgetExceeded, InvalidArgument, LedgerError
from huemeans.guarantee import PrivacyUnit

_MU_BITS: Final = 50
_SUM_BITS: Final = 60
_WAIT: Final = 60.0  # seconds for other processes to finish their entry
_APPLICATION: Final = 0x48554D45
_PAUSE: Final = 0.002
_MOST_NAME: Final = 200

_TABLE: Final = """CREATE TABLE entries (
    entry INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    dataset TEXT NOT NULL,
    mu_squared INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    inverse_square_sum INTEGER NOT NULL,
    body TEXT NOT NULL,
    previous TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT"""
_NO_UPDATE: Final = """CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""
_NO_DELETE: Final = """CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"""


@dataclass(frozen=True)
class Cost:
    """What a release spends, for its unit of privacy."""

    mu_squared: Fraction
    draws: Draws


@dataclass(frozen=True)
class Entry:
    """One line of a ledger."""

    number: int
    kind: str
    dataset: str
    mu_squared: Fraction
    draws: Draws
    body: Mapping[str, Any]
    hash: str

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter of the entry, rounded up."""
        return sqrt_up(self.mu_squared) if self.mu_squared else 0.0


@dataclass(frozen=True)
class Balance:
    """What a data set may spend, has spent and has left."""

    dataset: str
    epsilon: float
    delta: float
    unit: PrivacyUnit
    releases: int
    spent: Cost

    @property
    def mu(self) -> float:
        """The Gaussian-DP parameter that the budget buys, given the draws made so far."""
        return largest_mu(self.epsilon, self.delta, self.spent.draws)

    @property
    def mu_left(self) -> float:
        """What is left of it: mu^2 adds up."""
        return math.sqrt(max(self.mu**2 - float(self.spent.mu_squared), 0.0))

    def epsilon_left(self, delta: float | None = None) -> float:
        """Return the epsilon of one more release that takes all that is left, at its delta."""
        at = self.delta if delta is None else delta
        return epsilon_at(self.mu_left, at, "dp") if self.mu_left > 0 else 0.0

    def allows(self, cost: Cost) -> bool:
        """Tell whether one more release of this cost stays within the budget."""
        draws = self.spent.draws
        together = Draws(
            draws.count + cost.draws.count, draws.inverse_square_sum + cost.draws.inverse_square_sum
        )
        mu = sqrt_up(self.spent.mu_squared + cost.mu_squared)
        return real_delta(mu, self.epsilon, together) <= self.delta


class Ledger:
    """The ledger in a file; see the module for what it guarantees.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/privacy.ledger")
    >>> ledger.open_dataset("customers", epsilon=3.0, delta=1e-6)
    >>> ledger.balance("customers").releases
    0
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def open_dataset(
        self, dataset: str, *, epsilon: float, delta: float, unit: PrivacyUnit | None = None
    ) -> None:
        """Give a data set its budget, once and for all; the file is made if it is not there."""
        name = _name(dataset)
        whole = PrivacyUnit("add-remove") if unit is None else unit
        eps, dlt = checks.epsilon(epsilon), checks.delta(delta)
        body = {
            "epsilon": eps,
            "delta": dlt,
            "neighbors": whole.neighbors,
            "max_rows_per_person": whole.max_rows,
        }
        with self._transaction(create=True) as connection:
            entries = _entries(connection)
            if any(entry.dataset == name for entry in entries):
                raise InvalidArgument(f"{self.path} has a budget for {name!r} already: it is set once.")
            _append(connection, "dataset", name, Cost(Fraction(0), Draws(0, Fraction(0))), body)

    def reserve(self, dataset: str, cost: Cost, unit: PrivacyUnit, body: Mapping[str, Any]) -> Entry:
        """Enter a release before its first row is read, or refuse it; what is entered is spent."""
        name = _name(dataset)
        with self._transaction() as connection:
            balance = _balance(self.path, _entries(connection), name)
            if unit != balance.unit:
                raise InvalidArgument(
                    f"the budget of {name!r} in {self.path} protects {balance.unit}; this release would "
                    f"protect {unit}. Fit with the neighbors and max_rows_per_person of the budget."
                )
            if not balance.allows(cost):
                raise BudgetExceeded(_refusal(name, balance, cost, body))
            return _append(connection, "release", name, cost, body)

    def balance(self, dataset: str) -> Balance:
        """Return what one data set has left, after checking every entry."""
        return _balance(self.path, self.entries(), _name(dataset))

    def balances(self) -> list[Balance]:
        """Return what every data set has left, after checking every entry."""
        entries = self.entries()
        names = [entry.dataset for entry in entries if entry.kind == "dataset"]
        return [_balance(self.path, entries, name) for name in names]

    def entries(self) -> list[Entry]:
        """Return all entries, after checking that they are as they were written."""
        with self._connection() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            if found != ["ok"]:
                raise LedgerError(f"{self.path} is corrupt: SQLite's own check fails.")
            return _entries(connection)

    @contextmanager
    def _transaction(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        with self._connection(create=create) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                if create:
                    _make(connection)
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def _connection(self, *, create: bool = False) -> Iterator[sqlite3.Connection]:
        if not create and not self.path.is_file():
            raise InvalidArgument(f"{self.path} is not there: make it with 'huemeans budget init'.")
        try:
            with _locked(self.path, create=create) as path, closing(_connected(path)) as connection:
                if create:
                    connection.execute("PRAGMA journal_mode = WAL")
                yield connection
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in ("locked", "busy")):
                raise LedgerError(f"{self.path} is locked by another process.") from None
            raise LedgerError(f"{self.path} is corrupt, or cannot be written.") from None
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be opened: {error.strerror}.") from None
        except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError):
            raise LedgerError(f"{self.path} is corrupt or no ledger.") from None


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


@contextmanager
def _locked(path: Path, *, create: bool) -> Iterator[Path]:
    """Hold the file itself, whatever names lead to it, from before SQLite opens it until after it is closed.

    In a container the file may have another name, and SQLite keeps its journal by name.  Closing any handle
    of a file drops all the locks that SQLite has on it in this process, so ours closes last.
    """
    with path.open("ab" if create else "rb") as file:
        if os.fstat(file.fileno()).st_nlink > 1:
            raise LedgerError(f"{path} has a second name (a hard link). Remove it: both would be spent.")
        until = time.monotonic() + _WAIT
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise LedgerError(f"{path} is locked by another process.") from None
                time.sleep(_PAUSE)
        yield path.resolve()


def _make(connection: sqlite3.Connection) -> None:
    """Make the table and what keeps it append-only, if the file is empty."""
    if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        return
    for statement in (_TABLE, _NO_UPDATE, _NO_DELETE, f"PRAGMA application_id = {_APPLICATION}"):
        connection.execute(statement)
    nothing = Cost(Fraction(0), Draws(0, Fraction(0)))
    _append(connection, "ledger", "", nothing, {"id": secrets.token_hex(16), "version": 1})


def _entries(connection: sqlite3.Connection) -> list[Entry]:
    """Return all entries of a ledger that is as it was written, or raise."""
    said = {row[0] for row in connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL")}
    marked = connection.execute("PRAGMA application_id").fetchone()[0]
    if said != {_TABLE, _NO_UPDATE, _NO_DELETE} or marked != _APPLICATION:
        raise LedgerError("the file is no ledger, or its tables were changed.")
    found: list[Entry] = []
    previous = ""
    for row in connection.execute("SELECT * FROM entries ORDER BY entry"):
        *content, before, digest = row
        number = len(found) + 1
        if content[0] != number or before != previous or digest != _digest(content, previous):
            raise LedgerError(f"the ledger is corrupt: entry {number} is not as it was written.")
        found.append(_entry(content, digest))
        previous = digest
    if not found or found[0].kind != "ledger":
        raise LedgerError("the ledger is corrupt: its first entry is missing.")
    return found


def _entry(content: list[Any], digest: str) -> Entry:
    number, kind, dataset, mu_squared, draws, inverse_square_sum, body = content
    return Entry(
        number,
        kind,
        dataset,
        Fraction(mu_squared, 2**_MU_BITS),
        Draws(draws, Fraction(inverse_square_sum, 2**_SUM_BITS)),
        json.loads(body),
        digest,
    )


def _append(
    connection: sqlite3.Connection, kind: str, dataset: str, cost: Cost, body: Mapping[str, Any]
) -> Entry:
    last = connection.execute("SELECT entry, hash FROM entries ORDER BY entry DESC LIMIT 1").fetchone()
    number, previous = (last[0] + 1, last[1]) if last else (1, "")
    dated = dict(body) | {"time": datetime.now(UTC).isoformat(timespec="seconds")}
    content = [
        number,
        kind,
        dataset,
        math.ceil(cost.mu_squared * 2**_MU_BITS),
        cost.draws.count,
        math.ceil(cost.draws.inverse_square_sum * 2**_SUM_BITS),
        json.dumps(dated, sort_keys=True),
    ]
    digest = _digest(content, previous)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*content, previous, digest))
    return _entry(content, digest)


def _digest(content: list[Any], previous: str) -> str:
    return hashlib.sha256(json.dumps([*content, previous]).encode()).hexdigest()


def _balance(path: Path, entries: list[Entry], dataset: str) -> Balance:
    own = [entry for entry in entries if entry.dataset == dataset]
    if not own or own[0].kind != "dataset":
        known = sorted({entry.dataset for entry in entries if entry.kind == "dataset"})
        raise InvalidArgument(
            f"{path} has no budget for {dataset!r}, only for {known}. Make one with 'huemeans budget init'."
        )
    said, releases = own[0].body, own[1:]
    spent = Cost(
        sum((entry.mu_squared for entry in releases), Fraction(0)),
        Draws(
            sum(entry.draws.count for entry in releases),
            sum((entry.draws.inverse_square_sum for entry in releases), Fraction(0)),
        ),
    )
    unit = PrivacyUnit(said["neighbors"], said["max_rows_per_person"])
    return Balance(dataset, said["epsilon"], said["delta"], unit, len(releases), spent)


def _refusal(dataset: str, balance: Balance, cost: Cost, body: Mapping[str, Any]) -> str:
    delta = body.get("delta", balance.delta)
    asked = f"epsilon={body['epsilon']:g} at delta={delta:g}, " if "epsilon" in body else ""
    return (
        f"the budget of {dataset!r} does not allow this release. "
        f"Asked: {asked}mu={sqrt_up(cost.mu_squared):.4g}. "
        f"Left of epsilon={balance.epsilon:g} at delta={balance.delta:g}, after {balance.releases} "
        f"{'release' if balance.releases == 1 else 'releases'}: "
        f"mu={balance.mu_left:.4g}, that is epsilon={balance.epsilon_left(delta):.4g} at delta={delta:g}. "
        "Nothing was read and nothing was drawn."
    )


def _name(dataset: str) -> str:
    name = dataset.strip() if isinstance(dataset, str) else ""
    if not name.isprintable() or not 0 < len(name) <= _MOST_NAME:
        checks.refuse("dataset", repr(dataset)[:_MOST_NAME], "a name", "Say which data set the budget is of")
    return unicodedata.normalize("NFC", name)
