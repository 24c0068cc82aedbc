"""The report in a real browser, where there is one: it fits, it is not blank, and dark is dark."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from matplotlib.image import imread

from huemeans import PrivateKMeans

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MEASURE = (
    "<script>document.title = [document.documentElement.scrollWidth, innerWidth].join(' ')</script></body>"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Return the report of a release with long names and many clusters."""
    if CHROMIUM is None:
        pytest.skip("an extra: no chromium here")
    rng = np.random.default_rng(0)
    rows = rng.uniform(0, 100, size=(9, 12))[rng.integers(9, size=8000)] + rng.normal(size=(8000, 12))
    bounds = {f"a rather long name of feature {at}, in thousands": (-10, 110) for at in range(12)}
    table = rows.view(type("Frame", (np.ndarray,), {"columns": list(bounds)}))
    release = PrivateKMeans("auto", bounds=bounds, random_state=0).fit(table).release_
    return release.write(tmp_path_factory.mktemp("page")) / "report.html"


def browsed(*arguments):
    """Run the browser without a window and return what it prints."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout  # noqa: S603


@pytest.mark.parametrize("width", [500, 900, 1600])
def test_nothing_sticks_out(page, tmp_path, width):
    """The page is as wide as its window; wide tables scroll in themselves."""
    measured = tmp_path / "measured.html"
    measured.write_text(page.read_text().replace("</body>", MEASURE))
    title = re.search(
        r"<title>(\d+) (\d+)</title>",
        browsed(f"--window-size={width},900", "--dump-dom", f"file://{measured}"),
    )
    assert int(title[1]) <= int(title[2])


@pytest.mark.parametrize(("scheme", "dark"), [("1", False), ("0", True)])
def test_the_page_is_light_or_dark_as_the_reader_likes(page, tmp_path, scheme, dark):
    """And holds more than its background: bars, cells and dots in many colors."""
    shot = tmp_path / "shot.png"
    browsed(f"--blink-settings=preferredColorScheme={scheme}", "--window-size=900,3000",
            f"--screenshot={shot}", f"file://{page}")  # fmt: skip
    picture = imread(shot)[:, :, :3]
    assert (np.median(picture) < 0.3) == dark
    assert len(np.unique((picture * 15).astype(int).reshape(-1, 3), axis=0)) > 40


def test_it_prints(page, tmp_path):
    """To a PDF of a few pages."""
    sheet = tmp_path / "page.pdf"
    browsed(f"--print-to-pdf={sheet}", f"file://{page}")
    pages = len(re.findall(rb"/Type\s*/Page[^s]", sheet.read_bytes()))
    assert 2 <= pages <= 12
