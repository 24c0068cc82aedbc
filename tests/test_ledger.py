"""Ledgers: never overspent, never rewritten, never silently wrong."""

import multiprocessing
import sqlite3
from fractions import Fraction

import numpy as np
import pytest

from huemeans import BudgetExceeded, Draws, InvalidArgument, Ledger, LedgerError, PrivacyUnit, PrivateKMeans
from huemeans.discretization import largest_mu
from huemeans.ledger import Cost
from huemeans.testing import seeded_noise

ROW = PrivacyUnit("add-remove")
DRAWS = Draws(1000, Fraction(1000, 2**40))


def opened(folder, epsilon=2.0, delta=1e-6, unit=ROW):
    """Return a ledger with a budget for "people"."""
    ledger = Ledger(folder / "privacy.ledger")
    ledger.open_dataset("people", epsilon=epsilon, delta=delta, unit=unit)
    return ledger


def part(share, epsilon=2.0, delta=1e-6, count=1):
    """Return the cost of a release that takes this share of the budget, if ``count`` of them are made."""
    draws = Draws(DRAWS.count * count, DRAWS.inverse_square_sum * count)
    return Cost(Fraction(largest_mu(epsilon, delta, draws)) ** 2 * share, DRAWS)


def test_a_budget_can_be_spent_to_the_last_and_no_further(tmp_path):
    """Four quarters fit, the fifth does not; the refusal says what was asked and what is left."""
    ledger = opened(tmp_path)
    for _ in range(4):
        ledger.reserve("people", part(Fraction(1, 4), count=4), ROW, {"epsilon": 1.0})
    with pytest.raises(BudgetExceeded, match=r"Asked: epsilon=1 .* Left .* Nothing was read") as caught:
        ledger.reserve("people", part(Fraction(1, 4), count=4), ROW, {"epsilon": 1.0})
    assert "mu=0" in str(caught.value)
    assert ledger.balance("people").releases == 4


def test_one_release_that_asks_for_the_whole_budget_gets_it(tmp_path):
    """The same epsilon and delta as the budget's are enough for one release, not for two."""
    ledger = opened(tmp_path, epsilon=1.0)
    X = np.random.default_rng(0).normal(size=(500, 2))
    options = {"epsilon": 1.0, "delta": 1e-6, "bounds": (-5, 5), "ledger": ledger.path, "dataset": "people"}
    release = PrivateKMeans(2, **options).fit(X).release_
    entry = ledger.entries()[-1]
    assert release.document["ledger"] == {"dataset": "people", "entry": 3, "hash": entry.hash}
    with pytest.raises(BudgetExceeded):
        PrivateKMeans(2, **options).fit(X)


def test_many_releases_cost_what_they_really_cost(tmp_path):
    """At epsilon 0.2 each, more than three times as many fit into epsilon 2 as by adding up epsilons."""
    ledger = opened(tmp_path)
    small = Cost(Fraction(largest_mu(0.2, 1e-6, DRAWS)) ** 2, DRAWS)
    made = 0
    while ledger.balance("people").allows(small):
        ledger.reserve("people", small, ROW, {})
        made += 1
    assert 30 < made < 200
    with pytest.raises(BudgetExceeded):
        ledger.reserve("people", small, ROW, {})


def attempts(path, share, count, results):
    """Try ``count`` reservations."""
    ledger, accepted = Ledger(path), 0
    for _ in range(count):
        try:
            ledger.reserve("people", share, ROW, {})
        except BudgetExceeded:
            continue
        accepted += 1
    results.put(accepted)


def test_64_processes_that_race_for_100_units_get_exactly_100(tmp_path):
    """400 attempts, and whoever wins, no more and no fewer."""
    ledger = opened(tmp_path)
    unit = part(Fraction(1, 100), count=100)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    counts = [7] * 16 + [6] * 48
    assert sum(counts) == 400
    workers = [context.Process(target=attempts, args=(ledger.path, unit, count, results)) for count in counts]
    for worker in workers:
        worker.start()
    accepted = sum(results.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
    assert accepted == 100
    assert ledger.balance("people").releases == 100


def test_entries_cannot_be_changed_or_removed_through_sql(tmp_path):
    """Triggers refuse both."""
    ledger = opened(tmp_path)
    with sqlite3.connect(ledger.path) as connection:
        for statement in ("UPDATE entries SET dataset = 'x'", "DELETE FROM entries"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
    connection.close()


COLUMNS = [
    "entry",
    "kind",
    "dataset",
    "mu_squared",
    "draws",
    "inverse_square_sum",
    "body",
    "previous",
    "hash",
]


@pytest.mark.parametrize("entry", [1, 2, 3, 4])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_changed_cell_of_any_row_is_found(tmp_path, entry, column):
    """Whoever changes a cell past the triggers, the last row's included, is found out."""
    ledger = opened(tmp_path)
    for _ in range(2):
        ledger.reserve("people", part(Fraction(1, 10)), ROW, {"epsilon": 1.0})
    with sqlite3.connect(ledger.path) as connection:
        trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries_stay'").fetchone()[
            0
        ]
        connection.execute("DROP TRIGGER entries_stay")
        text = column not in ("entry", "mu_squared", "draws", "inverse_square_sum")
        change = f"{column} || 'x'" if text else f"{column} + 10"
        connection.execute(f"UPDATE entries SET {column} = {change} WHERE entry = {entry}")  # noqa: S608
        connection.execute(trigger)
    connection.close()
    with pytest.raises(LedgerError, match="corrupt"):
        ledger.balances()
    with pytest.raises(LedgerError, match="corrupt"):
        ledger.reserve("people", part(Fraction(1, 10)), ROW, {})


def test_flipped_bytes_of_the_file_are_found_or_do_no_harm(tmp_path):
    """Every byte of every row's text, flipped in the file: an error, never another balance."""
    ledger = opened(tmp_path)
    ledger.reserve("people", part(Fraction(1, 10)), ROW, {"epsilon": 1.0})
    right, content = ledger.balances(), ledger.path.read_bytes()
    first = content.index(b"ledger{")  # the first row's kind, whose dataset is empty, and its body
    found = 0
    places = [at for word in (b"people", b"epsilon", b"ledger{") for at in _places(content, word)]
    places += list(range(first, first + 40))
    for at in places:
        broken = bytearray(content)
        broken[at] ^= 0x10
        ledger.path.write_bytes(bytes(broken))
        try:
            assert ledger.balances() == right
        except LedgerError:
            found += 1
    assert found >= len(places) * 0.9


def _places(content, word):
    """Return where a word stands."""
    at = content.find(word)
    while at >= 0:
        yield at
        at = content.find(word, at + 1)


def test_costs_are_rounded_up(tmp_path):
    """What is stored is never less than what was asked."""
    ledger = opened(tmp_path)
    cost = Cost(Fraction(1, 3 * 2**40), Draws(1, Fraction(1, 3 * 2**40)))
    entry = ledger.reserve("people", cost, ROW, {})
    assert cost.mu_squared <= entry.mu_squared <= cost.mu_squared + Fraction(1, 2**49)
    assert entry.draws.inverse_square_sum >= cost.draws.inverse_square_sum


def test_a_fit_that_fails_after_its_entry_has_spent_it(tmp_path, monkeypatch):
    """A crash after the reservation counts as spent."""
    ledger = opened(tmp_path)

    def crashes(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("huemeans.domain.Domain.to_grid", crashes)
    with pytest.raises(KeyboardInterrupt):
        PrivateKMeans(2, bounds=(-5, 5), ledger=ledger, dataset="people").fit(np.zeros((10, 2)))
    assert ledger.balance("people").releases == 1


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": (5, -5)},
        {"feature_weights": [1.0]},
        {"n_clusters": 0},
        {"missing": "mean"},
        {"outside": "bogus", "bounds": "private"},
        {"random_state": "abc"},
    ],
)
def test_a_wrong_setting_spends_nothing(tmp_path, options):
    """What can be refused without a row is refused before the entry."""
    ledger = opened(tmp_path)
    with pytest.raises((InvalidArgument, ValueError)):
        PrivateKMeans(
            **{"n_clusters": 2, "bounds": (-5, 5), "ledger": ledger, "dataset": "people"} | options
        ).fit(np.zeros((10, 2)))
    assert ledger.balance("people").releases == 0


def test_seeded_noise_has_no_entry(tmp_path):
    """It protects nobody, so it spends nothing and releases nothing from a ledger."""
    ledger = opened(tmp_path)
    with seeded_noise(1), pytest.raises(InvalidArgument, match="seeded"):
        PrivateKMeans(2, bounds=(-5, 5), ledger=ledger, dataset="people").fit(np.zeros((10, 2)))
    assert ledger.balance("people").releases == 0


def test_a_wrong_number_of_people_spends_nothing(tmp_path):
    """Nor does a data set without a ledger fit in silence."""
    ledger = opened(tmp_path)
    model = PrivateKMeans(2, bounds=(-5, 5), ledger=ledger, dataset="people")
    with pytest.raises(InvalidArgument, match="person"):
        model.fit(np.zeros((10, 2)), person=[1, 2])
    with pytest.raises(InvalidArgument, match=r"^ledger=None"):
        PrivateKMeans(2, bounds=(-5, 5), dataset="people").fit(np.zeros((10, 2)))
    assert ledger.balance("people").releases == 0


def test_a_second_name_of_the_file_is_refused(tmp_path):
    """SQLite keeps its journal beside the name: two names could both be spent."""
    ledger = opened(tmp_path)
    (tmp_path / "other.ledger").hardlink_to(ledger.path)
    for name in (ledger.path, tmp_path / "other.ledger"):
        with pytest.raises(LedgerError, match="second name"):
            Ledger(name).reserve("people", part(Fraction(1, 10)), ROW, {})


def test_a_symbolic_link_is_the_same_ledger(tmp_path):
    """Spent through one name, spent for both."""
    ledger = opened(tmp_path)
    (tmp_path / "link").symlink_to(ledger.path)
    Ledger(tmp_path / "link").reserve("people", part(Fraction(1, 10)), ROW, {})
    assert ledger.balance(" people ").releases == 1


def test_another_unit_than_the_budgets_is_refused(tmp_path):
    """A budget for people with three rows is not for single rows, nor for replaced ones."""
    ledger = opened(tmp_path, unit=PrivacyUnit("add-remove", 3))
    with pytest.raises(InvalidArgument, match="at most 3 rows"):
        PrivateKMeans(2, bounds=(-5, 5), ledger=ledger, dataset="people").fit(np.zeros((10, 2)))
    model = PrivateKMeans(2, bounds=(-5, 5), max_rows_per_person=3, ledger=ledger, dataset="people")
    assert model.fit(np.zeros((10, 2))).guarantee_.mu == pytest.approx(ledger.entries()[-1].mu, rel=1e-9)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda ledger: ledger.open_dataset("people", epsilon=1, delta=1e-6), InvalidArgument, "already"),
        (lambda ledger: ledger.open_dataset("", epsilon=1, delta=1e-6), InvalidArgument, "^dataset=''"),
        (lambda ledger: ledger.open_dataset("x", epsilon=-1, delta=1e-6), InvalidArgument, "^epsilon=-1"),
        (lambda ledger: ledger.balance("others"), InvalidArgument, r"only for \['people'\]"),
        (lambda ledger: Ledger(ledger.path.parent / "no").balances(), InvalidArgument, "budget init"),
        (lambda ledger: Ledger(ledger.path.parent).balances(), InvalidArgument, "not there"),
    ],
)
def test_wrong_calls_say_what_is_wrong(tmp_path, call, kind, message):
    """And what to do."""
    ledger = opened(tmp_path)
    with pytest.raises(kind, match=message):
        call(ledger)


@pytest.mark.parametrize("content", [b"", b"no database at all, but text", b"\x00" * 5000])
def test_a_file_that_is_no_ledger_is_an_error(tmp_path, content):
    """Empty, text, zeros."""
    path = tmp_path / "x.ledger"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        Ledger(path).balances()


def test_a_ledger_that_cannot_be_opened_says_so(tmp_path, monkeypatch):
    """By its own name, not as a lack of memory."""
    ledger = opened(tmp_path)

    def refuses(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuses)
    model = PrivateKMeans(2, bounds=(-5, 5), ledger=ledger, dataset="people")
    with pytest.raises(LedgerError, match="cannot be opened: Permission denied"):
        model.fit(np.zeros((10, 2)))


def test_a_locked_ledger_says_so(tmp_path, monkeypatch):
    """After waiting for the others."""
    monkeypatch.setattr("huemeans.ledger._WAIT", 0.05)
    ledger = opened(tmp_path)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        ledger.reserve("people", part(Fraction(1, 10)), ROW, {})
    other.close()
