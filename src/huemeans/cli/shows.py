"""``huemeans plan``, ``report``, ``verify`` and ``doctor``."""

import os
import platform
import shutil
import sqlite3
import tempfile
from dataclasses import asdict
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from huemeans.cli.common import COUNT, delta_option, epsilon_option, give, json_option, neighbors_option, say
from huemeans.errors import InvalidArgument, InvalidRelease
from huemeans.finding import Finding

if TYPE_CHECKING:
    from huemeans.release import Release

_PACKAGES = (
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "pyarrow",
    "matplotlib",
    "click",
    "jinja2",
    "jsonschema",
    "threadpoolctl",
)
_STRICT_TABLES = (3, 37)
_PAGES = (".html", ".htm")


@click.command()
@click.option("--rows", type=COUNT, required=True, help="About how many rows there are; a guess is fine.")
@click.option("--features", type=COUNT, required=True)
@click.option("--clusters", type=COUNT, required=True)
@epsilon_option
@delta_option
@neighbors_option
@click.option("--bounds", type=click.Choice(["public", "private"]), default="private", show_default=True)
@click.option("--rows-per-unit", type=COUNT, default=1, show_default=True)
@json_option
def plan(*, rows: int, features: int, clusters: int, epsilon: float, delta: float, neighbors: str,
         bounds: str, rows_per_unit: int, as_json: bool) -> None:  # fmt: skip
    """Say what a fit will do and how large its noise will be, before a row is touched."""
    from huemeans.forecast import plan as forecast

    said = forecast(
        rows,
        features,
        clusters,
        epsilon,
        delta,
        neighbors=neighbors,  # type: ignore[arg-type]
        learns_bounds=bounds == "private",
        max_rows_per_person=rows_per_unit,
    )
    content = {name: getattr(said, name) for name in said.__dataclass_fields__}
    give(content | {"parts": dict(said.parts)}, as_json=as_json, text=str(said))


@click.command()
@click.argument("release", type=click.Path())
@click.option("--out", type=click.Path(), help="The page to write; report.html beside it if not given.")
@json_option
def report(release: str, out: str | None, *, as_json: bool) -> None:
    """Draw the page of a release."""
    from huemeans.release import Release
    from huemeans.report.page import report_page

    found = Release.read(release)
    place = Path(release)
    page = Path(out) if out else (place if place.is_dir() else place.parent) / "report.html"
    if page.suffix.lower() not in _PAGES:
        raise InvalidArgument(f"{page} is no name for a page. End it in .html.")
    try:
        page.write_text(report_page(found), encoding="utf-8")
    except OSError as error:
        raise InvalidArgument(f"{page} cannot be written: {error.strerror}.") from None
    give({"report": str(page)}, as_json=as_json, text=str(page))


@click.command()
@click.argument("release", type=click.Path(exists=True))
@click.option("--ledger", type=click.Path(dir_okay=False), help="Look for the entry in this ledger.")
@json_option
def verify(release: str, ledger: str | None, *, as_json: bool) -> None:
    """Recompute what a release says of itself. Leaves with 1 if something is wrong."""
    from huemeans.release import Release

    try:
        found = Release.read(release)
    except InvalidRelease as error:
        findings = [Finding("schema", passed=False, words=str(error))]
    else:
        findings = [*found.verify(), *_file_findings(found, Path(release))]
        if ledger is not None:
            findings.append(_entry_finding(found, ledger))
    _tell(findings, as_json=as_json)


def _file_findings(release: "Release", place: Path) -> list[Finding]:
    """Compare the files beside a release with what it gives, as far as they are there."""
    from huemeans.publishing import texts

    folder = place if place.is_dir() else place.parent
    findings = []
    for name, text in texts(release).items():
        if name != "release.json" and (folder / name).is_file():
            same = (folder / name).read_bytes() == text.encode()
            words = "is what the release gives" if same else "is not what this version makes of the release"
            findings.append(Finding(name, same, words))
    return findings


def _entry_finding(release: "Release", ledger: str) -> Finding:
    """Find the entry that paid for a release, and whether it paid enough."""
    from huemeans.ledger import Ledger

    said = release.document["ledger"]
    if said is None:
        return Finding("ledger", passed=False, words="the release names no entry of a ledger")
    book = Ledger(ledger)
    entry = next((one for one in book.entries() if one.number == said["entry"]), None)
    name = f"entry {said['entry']} of {said['dataset']!r}"
    if entry is None or (entry.kind, entry.dataset, entry.hash) != ("release", said["dataset"], said["hash"]):
        return Finding("ledger", passed=False, words=f"{name} is not in {ledger}")
    paid = (
        entry.mu_squared >= Fraction(release.guarantee.mu or 0.0) ** 2
        and entry.draws.count >= release.draws.count
        and entry.draws.inverse_square_sum >= release.draws.inverse_square_sum
        and book.balance(entry.dataset).unit == release.guarantee.unit
    )
    return Finding(
        "ledger", paid, f"{name} is in {ledger} and {'paid for it' if paid else 'paid too little'}"
    )


@click.command()
@json_option
def doctor(*, as_json: bool) -> None:
    """Check that this machine can make releases. Leaves with 1 if something is wrong."""
    findings = [Finding("python", passed=True, words=platform.python_version())]
    for package in _PACKAGES:
        try:
            findings.append(Finding(package, passed=True, words=version(package)))
        except PackageNotFoundError:
            findings.append(Finding(package, passed=False, words="is not installed"))
    fresh = len(os.urandom(32)) == 32  # noqa: PLR2004
    findings.append(Finding("randomness", fresh, "the operating system gives random bytes"))
    strict = sqlite3.sqlite_version_info >= _STRICT_TABLES
    findings.append(Finding("sqlite", strict, f"{sqlite3.sqlite_version}; ledgers need 3.37"))
    findings.append(_temporary_finding())
    findings += [_engine_finding("dask"), _engine_finding("spark")]
    findings.append(_fit_finding())
    _tell(findings, as_json=as_json)


def _engine_finding(name: str) -> Finding:
    """Say whether tables of an engine can be fitted; nobody needs one, so that its absence is no problem."""
    try:
        found = version({"dask": "dask", "spark": "pyspark"}[name])
    except PackageNotFoundError:
        return Finding(name, passed=True, words=f"is not installed; huemeans[{name}] brings it")
    if name == "spark" and shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        return Finding(name, passed=False, words=f"{found}, but there is no Java: Spark needs 17 or later")
    return Finding(name, passed=True, words=found)


def _temporary_finding() -> Finding:
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x")
    except OSError as error:
        return Finding("temporary files", passed=False, words=f"cannot be written: {error.strerror}")
    return Finding("temporary files", passed=True, words=tempfile.gettempdir())


def _fit_finding() -> Finding:
    """Fit a made-up table and check the release."""
    import numpy as np

    from huemeans.private import PrivateKMeans
    from huemeans.release import Release

    rows = np.repeat([[0.0, 0.0], [9.0, 9.0]], 2000, axis=0) + np.random.default_rng(0).normal(size=(4000, 2))
    release = PrivateKMeans(2, bounds=(-6, 15)).fit(rows).release_
    right = Release(release.text) == release and all(one.passed for one in release.verify())
    near = bool(np.abs(np.sort(release.centers[:, 0]) - [0, 9]).max() < 1)
    return Finding("a fit", right and near, "made-up clusters are found, and their release verifies")


def _tell(findings: list[Finding], *, as_json: bool) -> None:
    passed = all(one.passed for one in findings)
    plain = bool(os.environ.get("NO_COLOR"))
    lines = []
    for one in findings:
        good = one.passed
        mark = "ok " if good else "NOT"
        shown = mark if plain else click.style(mark, fg="green" if good else "red")
        lines.append(f"{shown}  {one.check}: {one.words}")
    give([asdict(one) for one in findings], as_json=as_json, text="\n".join(lines))
    if not passed:
        say("A problem was found.")
        raise click.exceptions.Exit(1)
