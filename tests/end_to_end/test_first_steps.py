"""What users run first, and what the project says of itself."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from huemeans import Ledger, Release

ROOT = Path(__file__).parents[2]


def run(script, cwd):
    """Run a script as a user would and return what it printed."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, ROOT / script], cwd=cwd, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_the_demo_makes_a_report_and_says_which_page_to_open(tmp_path):
    """In under a minute, with the budget kept in a ledger."""
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "huemeans", "demo"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert time.monotonic() - begun < 60
    assert done.stdout.startswith("(epsilon=1, delta=1e-06)-differential privacy")
    page = Path(done.stderr.splitlines()[-1].rpartition("Open ")[2])
    assert "published under differential privacy" in page.read_text()
    release = Release.read(page.parent)
    assert all(finding.passed for finding in release.verify())
    assert Ledger(page.parent / "privacy.ledger").balance("customers").releases == 1


def test_the_speed_benchmark_prints_its_figure_and_target(tmp_path):
    """The figure is printed whatever it is; the target stands beside it."""
    out = run("benchmarks/noise.py", tmp_path)
    assert "s of CPU (target: under 2.0 s)" in out


@pytest.mark.parametrize("word", ["session", "CEO", "../shared"])
def test_the_text_speaks_of_the_software_only(word):
    """What the project says of itself does not speak of how it was made."""
    for pattern in ("*.md", "src/**/*.py", "benchmarks/*.py"):
        for path in ROOT.glob(pattern):
            assert word not in path.read_text(), path
