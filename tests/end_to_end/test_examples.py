"""The scripts that users run first."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script, cwd):
    """Run a script as a user would and return what it printed."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, ROOT / script], cwd=cwd, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout


def test_the_demo_says_what_it_promises_and_where_its_picture_lies(tmp_path):
    """The guarantee is printed first, and table and picture lie where the last line says."""
    out = run("examples/demo.py", tmp_path)
    assert out.startswith("(epsilon=1, delta=1e-06)-differential privacy")
    folder = Path(out.splitlines()[-1].removeprefix("The results lie in ").split(":")[0])
    assert len((folder / "centroids.csv").read_text().splitlines()) == 5
    assert (folder / "centroids.png").stat().st_size > 10_000


def test_the_speed_benchmark_prints_its_figure_and_target(tmp_path):
    """The figure is printed whatever it is; the target stands beside it."""
    out = run("benchmarks/noise.py", tmp_path)
    assert "s of CPU (target: under 2.0 s)" in out


@pytest.mark.parametrize("word", ["session", "CEO", "../shared"])
def test_the_text_speaks_of_the_software_only(word):
    """What the project says of itself does not speak of how it was made."""
    for pattern in ("*.md", "src/**/*.py", "examples/*.py", "benchmarks/*.py"):
        for path in ROOT.glob(pattern):
            assert word not in path.read_text(), path
