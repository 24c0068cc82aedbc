"""The huemeans command: exit codes, data on stdout and talk on stderr, nothing computed from rows beside."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from huemeans import Ledger, Release
from huemeans.cli import run

FACTS = 'x = [-5, 15]\ny = [-5, 15]\nkind = ["cat", "dog"]\n'


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """Return a folder with a table, its public facts and a ledger, and stand in it."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 2)) + np.repeat([[0, 0], [9, 9]], 1000, axis=0)
    lines = [f"{a:.3f},{b:.3f},{('cat', 'dog')[i % 2]},p{i // 2}" for i, (a, b) in enumerate(rows)]
    Path("shop.csv").write_text("x,y,kind,who\n" + "\n".join(lines) + "\n")
    Path("facts.toml").write_text(FACTS)
    return tmp_path


def called(capsys, *arguments):
    """Run the command; return exit code, stdout, stderr."""
    code = run([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_fit_writes_a_release_and_says_what_it_found(shop, capsys):
    """Four files; the result on stdout, the talk on stderr."""
    code, out, err = called(
        capsys,
        "fit",
        "shop.csv",
        "--clusters",
        2,
        "--bounds",
        "facts.toml",
        "--out",
        "r",
        "--scale",
        "bounds",
    )
    assert code == 0
    assert out.startswith("(epsilon=1, delta=1e-06)-differential privacy")
    assert "Columns: x, y, kind=cat, kind=dog" in err
    release = Release.read("r")
    assert {path.name for path in (shop / "r").iterdir()} == {
        "release.json", "centroids.csv", "report.html", "card.md",
    }  # fmt: skip
    np.testing.assert_allclose(np.sort(release.centers[:, 0]), [0, 9], atol=0.5)
    assert called(capsys, "verify", "r")[0] == 0


@pytest.mark.usefixtures("shop")
def test_json_is_the_release(capsys):
    """Nothing else is on stdout."""
    code, out, _ = called(
        capsys, "fit", Path("shop.csv").resolve(), "--columns", "x,y", "--out", "r", "--json"
    )
    assert code == 0
    assert json.loads(out)["release"] == Release.read("r").document


@pytest.mark.usefixtures("shop")
def test_a_unit_column_limits_the_rows_of_each_person(capsys):
    """Two rows each: with one row a unit, half of them count."""
    options = ["--unit", "who", "--columns", "x,y", "--epsilon", 20, "--clusters", 2]
    assert called(capsys, "fit", "shop.csv", *options, "--out", "r1")[0] == 0
    assert Release.read("r1").sizes.sum() == pytest.approx(1000, rel=0.1)
    assert called(capsys, "fit", "shop.csv", *options, "--rows-per-unit", 2, "--out", "r2")[0] == 0
    assert Release.read("r2").sizes.sum() == pytest.approx(2000, rel=0.1)
    assert "at most 2 rows" in str(Release.read("r2").guarantee)
    assert "promise" not in str(Release.read("r2").guarantee)


def test_the_budget_is_kept_from_release_to_release(shop, capsys):
    """init, fit until it is refused with 4, show, history, verify with the ledger."""
    code, out, _ = called(
        capsys, "budget", "init", "l.db", "--dataset", "shop", "--epsilon", 2, "--delta", 1e-6, "--json"
    )
    assert code == 0
    assert json.loads(out)[0]["releases"] == 0
    fits = [
        called(capsys, "fit", "shop.csv", "--columns", "x,y", "--ledger", "l.db", "--dataset", "shop",
               "--out", f"r{at}")[0]
        for at in range(6)
    ]  # fmt: skip
    made = fits.index(4)
    assert made >= 2
    assert fits == [0] * made + [4] * (6 - made)
    assert not (shop / f"r{made}").exists()
    code, out, _ = called(capsys, "budget", "show", "l.db", "--json")
    assert json.loads(out)[0]["releases"] == made
    code, out, _ = called(capsys, "budget", "history", "l.db")
    assert len(out.splitlines()) == made + 1
    assert called(capsys, "verify", "r0", "--ledger", "l.db")[0] == 0
    Ledger("other.db").open_dataset("shop", epsilon=2, delta=1e-6)
    code, out, _ = called(capsys, "verify", "r0", "--ledger", "other.db")
    assert code == 1
    assert "is not in other.db" in out


def test_verify_finds_what_was_changed(shop, capsys):
    """Leaves with 1, and as JSON."""
    called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", "r")
    path = shop / "r" / "release.json"
    path.write_text(path.read_text().replace('"epsilon": 1.0', '"epsilon": 0.5'))
    code, out, _ = called(capsys, "verify", "r", "--json")
    assert code == 1
    assert not json.loads(out)[0]["passed"]


def test_report_draws_the_page_again(shop, capsys):
    """Beside the release, or elsewhere."""
    called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", "r")
    page = (shop / "r" / "report.html").read_text()
    (shop / "r" / "report.html").unlink()
    assert called(capsys, "report", "r")[:2] == (0, "r/report.html\n")
    assert (shop / "r" / "report.html").read_text() == page
    assert called(capsys, "report", "r/release.json", "--out", "p.html", "--json")[0] == 0
    assert (shop / "p.html").read_text() == page


def test_plan_doctor_and_compare_answer(shop, capsys):
    """Each in words and in JSON; compare says on both streams that it is not private."""
    code, out, _ = called(capsys, "plan", "--rows", 20_000, "--features", 6, "--clusters", 4, "--json")
    assert code == 0
    assert json.loads(out)["loss_inflation"] < 0.1
    assert called(capsys, "plan", "--rows", 20_000, "--features", 6, "--clusters", 4)[1].startswith(
        "20000 rows"
    )
    code, out, _ = called(capsys, "doctor")
    assert code == 0
    assert "dask: " in out
    assert "spark: " in out
    (shop / "xy.toml").write_text("x = [-5, 15]\ny = [-5, 15]\n")
    options = ["--clusters", 2, "--bounds", "xy.toml", "--epsilons", "0.5,2", "--repeats", 1]
    code, out, err = called(capsys, "compare", "shop.csv", *options)
    assert code == 0
    assert out.startswith("NOT PRIVATE")
    assert err.startswith("NOT PRIVATE")
    assert len(out.splitlines()) == 12
    code, out, _ = called(capsys, "compare", "shop.csv", *options, "--json")
    ratios = {(row["method"], row["epsilon"]): row["ratio"] for row in json.loads(out)["losses"]}
    assert ratios["PrivateKMeans", 2.0] < 1.1


@pytest.mark.usefixtures("shop")
def test_a_config_file_sets_defaults_and_flags_go_over_it(capsys):
    """Unknown settings are wrong usage."""
    Path("c.toml").write_text('clusters = 3\nepsilon = 4.0\ncolumns = "x,y"\nout = "here"\n')
    assert called(capsys, "fit", "shop.csv", "--config", "c.toml", "--epsilon", 3)[0] == 0
    release = Release.read("here")
    assert (len(release.sizes), release.guarantee.epsilon) == (3, 3.0)
    Path("c.toml").write_text('columns = ["x", "y"]\njson = true\nout = "there"\nclusters = "auto"\n')
    code, out, _ = called(capsys, "fit", "shop.csv", "--config", "c.toml")
    assert json.loads(out)["out"] == "there"
    for wrong in ("epsilom = 4.0", "epsilon = true", "clusters = 2.5", "out = 5", "rows-per-unit = 1.5"):
        Path("c.toml").write_text(wrong + "\n")
        code, _, err = called(capsys, "fit", "shop.csv", "--config", "c.toml")
        assert (code, wrong.split()[0].replace("-", "_") in err) == (2, True), wrong


COMPARE = ["compare", "shop.csv", "--bounds", "facts.toml"]
WRONG = {
    "no command": (["nothing"], 2, "No such command"),
    "no data": (["fit"], 2, "Missing argument"),
    "a word for K": (["fit", "shop.csv", "--clusters", "many"], 2, "neither a whole number"),
    "no clusters": (["fit", "shop.csv", "--clusters", "0"], 2, "neither a whole number"),
    "two letters": (["fit", "shop.csv", "--delimiter", ";;"], 3, "expected one letter"),
    "a page that is none": (["report", "shop.csv", "--out", "shop.csv"], 3, "shop.csv"),
    "no repeats": ([*COMPARE, "--clusters", "2", "--repeats", "0"], 2, "--repeats"),
    "too many clusters": ([*COMPARE, "--clusters", "2000"], 3, "more rows"),
    "a folder that cannot be": (["demo", "--out", "shop.csv/x"], 3, "shop.csv"),
    "no file": (["fit", "none.csv"], 3, "none.csv is not there"),
    "no column": (["fit", "shop.csv", "--columns", "x,z"], 3, r"no column ['z']"),
    "no facts": (["fit", "shop.csv", "--bounds", "none.toml"], 3, "'none.toml' are neither a file"),
    "too few facts": (["fit", "shop.csv", "--bounds", "facts.toml", "--columns", "x,who"], 3, "['who']"),
    "bad facts": (["fit", "shop.csv", "--bounds", "bad.toml"], 3, "expected [lower, upper]"),
    "no TOML": (["fit", "shop.csv", "--bounds", "shop.csv"], 3, "is no TOML"),
    "a bad epsilon": (["fit", "shop.csv", "--epsilon", "-1"], 2, "--epsilon"),
    "no ledger": (["fit", "shop.csv", "--ledger", "l.db", "--dataset", "shop"], 3, "budget init"),
    "no data set": (["fit", "shop.csv", "--ledger", "l.db"], 3, "dataset=None"),
    "no release": (["verify", "none"], 2, "does not exist"),
    "no release to draw": (["report", "none"], 3, "cannot be read"),
    "a ledger that is none": (["budget", "show", "shop.csv"], 5, "no ledger"),
    "no numbers to compare": (["compare", "shop.csv", "--clusters", "2", "--bounds", "facts.toml",
                               "--epsilons", "a,b"], 2, "no list of numbers"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_leave_with_their_code_and_a_sentence(shop, capsys, name):
    """Nothing on stdout, no traceback, no release."""
    (shop / "bad.toml").write_text('x = "wide"\n')
    arguments, expected, words = WRONG[name]
    code, out, err = called(capsys, *arguments)
    assert (code, out) == (expected, "")
    assert words in err
    assert "Traceback" not in err
    assert not (shop / "out").exists()


def test_programs_are_told_on_stdout_what_went_wrong(capsys):
    """With --json: the code and the sentence."""
    code, out, _ = called(capsys, "fit", "none.csv", "--json")
    assert json.loads(out)["error"]["code"] == code == 3
    code, out, _ = called(capsys, "fit", "shop.csv", "--epsilon", "x", "--json")
    assert json.loads(out)["error"]["code"] == code == 2


def test_files_beside_a_release_that_were_changed_are_found(shop, capsys):
    """The table, the card and the page are functions of the release."""
    for name in ("centroids.csv", "card.md", "report.html"):
        called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", name[:3])
        path = shop / name[:3] / name
        path.write_text(path.read_text().replace("1", "2"))
        code, out, _ = called(capsys, "verify", path.parent)
        assert (code, f"{name}: is not" in out) == (1, True)


def test_a_page_is_not_written_over_a_release(shop, capsys):
    """Nor over anything that is no page."""
    called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", "r")
    assert called(capsys, "report", "r", "--out", "r/release.json")[0] == 3
    assert called(capsys, "verify", shop / "r")[0] == 0


@pytest.mark.usefixtures("shop")
def test_a_release_is_not_written_over(capsys):
    """A second fit into the same folder is refused before it spends anything."""
    assert called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", "r")[0] == 0
    assert called(capsys, "fit", "shop.csv", "--columns", "x,y", "--out", "r")[0] == 3


@pytest.mark.usefixtures("shop")
def test_an_unexpected_error_shows_no_row(capsys, monkeypatch):
    """Its kind alone, for its text may quote the table."""

    def breaks(*_, **__):
        raise RuntimeError("row 17 holds 61234")

    monkeypatch.setattr("huemeans.domain.Domain.to_grid", breaks)
    code, out, err = called(capsys, "fit", "shop.csv", "--bounds", "facts.toml")
    assert (code, out) == (3, "")
    assert "RuntimeError" in err
    assert "61234" not in err


def process(*arguments, **options):
    """Start the command in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-m", "huemeans", *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options,
    )  # fmt: skip


def test_help_takes_less_than_a_third_of_a_second_and_no_scikit_learn():
    """CPU time, best of three, with what is imported."""
    code = (
        "import resource, sys\nfrom huemeans.cli import run\nrun(['--help'])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, 'sklearn' in sys.modules, 'numpy' in sys.modules)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]  # noqa: S603
    ends = [done.stdout.split()[-3:] for done in runs]
    seconds = min(float(end[0]) for end in ends)
    print("CPU seconds of --help:", seconds)
    assert seconds < 0.3
    assert ends[0][1:] == ["False", "False"]


def killed(folder, rng, count):
    """Kill fits at random moments; return how many releases there are, and how many entries."""
    begun = time.monotonic()
    warm = process("fit", "shop.csv", "--columns", "x,y", "--out", "warm", cwd=folder)
    warm.communicate()
    assert warm.returncode == 0
    whole = time.monotonic() - begun
    for at in range(count):
        one = process(
            "fit", "shop.csv", "--columns", "x,y", "--epsilon", 0.1, "--ledger", "l.db", "--dataset", "shop",
            "--out", f"r{at}", cwd=folder,
        )  # fmt: skip
        time.sleep(rng.uniform(0, 1.1 * whole))
        one.send_signal(signal.SIGKILL)
        one.communicate()
    entries = {entry.number: entry.hash for entry in Ledger(folder / "l.db").entries()}
    releases = [Release.read(path.parent) for path in sorted(folder.glob("r*/release.json"))]
    for release in releases:
        said = release.document["ledger"]
        assert entries[said["entry"]] == said["hash"]
    numbers = [release.document["ledger"]["entry"] for release in releases]
    assert len(set(numbers)) == len(numbers)
    return len(releases), len(entries) - 2


@pytest.mark.parametrize("count", [6, pytest.param(300, marks=pytest.mark.slow)])
def test_kill_at_any_moment_leaves_no_release_without_its_entry(shop, count):
    """Nor a ledger that is corrupt, nor one that is overspent."""
    Ledger(shop / "l.db").open_dataset("shop", epsilon=1.0, delta=1e-6)
    releases, entries = killed(shop, np.random.default_rng(), count)
    print(f"{count} kills: {entries} entries, {releases} releases")
    assert releases <= entries <= count
    balance = Ledger(shop / "l.db").balance("shop")
    assert balance.spent.mu_squared <= balance.mu**2
