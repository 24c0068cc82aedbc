"""Releases: read back as written, checked, refused when changed, and shown from themselves alone."""

import csv
import io
import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from huemeans import InvalidRelease, PrivateKMeans, Release
from huemeans.release_format import canonical, checksum
from huemeans.report.page import report_page
from huemeans.report.words import described, number, pair, rounded
from huemeans.testing import seeded_noise

NAMES = ["income, <b>thousand</b>", 'spent on "wine"', "visits & more"]


class Frame(np.ndarray):
    """An array with names for its columns, as a data frame has."""

    columns = NAMES


def table(n=4000, seed=0):
    """Return three clusters in three features of different size."""
    rng = np.random.default_rng(seed)
    kinds = np.array([[30, 100, 2], [60, 900, 9], [90, 300, 20]])
    rows = kinds[rng.choice(3, size=n, p=[0.5, 0.3, 0.2])] + rng.normal(size=(n, 3)) * [5, 60, 1.5]
    return rows.view(Frame)


BOUNDS = {NAMES[0]: (0, 150), NAMES[1]: (0, 1500), NAMES[2]: (0, 30)}
VARIANTS = {
    "plain": {},
    "auto": {"n_clusters": "auto", "k_range": (2, 5)},
    "learned": {"bounds": "private"},
    "white": {"noise": "white"},
    "scaled": {"scale": "bounds", "feature_weights": [1.0, 4.0, 1.0]},
    "people": {"max_rows_per_person": 2, "neighbors": "replace-one"},
}


def released(**options):
    """Return the release of a fit."""
    settings_ = {"n_clusters": 3, "epsilon": 2.0, "bounds": BOUNDS, "random_state": 0} | options
    return PrivateKMeans(**settings_).fit(table()).release_


@pytest.fixture(scope="module")
def release():
    """Return one release that many tests read."""
    return released()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_release_read_back_equals_the_one_written(tmp_path, name):
    """From its text, from its file and from its folder."""
    release = released(**VARIANTS[name])
    folder = release.write(tmp_path / "out")
    assert Release(release.text) == release
    assert Release.read(folder) == release
    assert Release.read(folder / "release.json") == release
    assert {file.name for file in folder.iterdir()} == {
        "release.json", "centroids.csv", "card.md", "report.html",
    }  # fmt: skip
    assert all(finding.passed for finding in release.verify())


@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0, 80.0])
@pytest.mark.parametrize("bounds", [BOUNDS, "private"])
def test_every_honest_release_verifies(neighbors, epsilon, bounds):
    """Whatever rounding its scales got, with few rows and with many."""
    for rows in (0, 40, 4000):
        model = PrivateKMeans(3, epsilon=epsilon, bounds=bounds, neighbors=neighbors)
        findings = model.fit(table(rows)).release_.verify()
        assert [finding for finding in findings if not finding.passed] == []


def test_a_release_says_what_the_estimator_says():
    """Centroids, sizes, error bars, loss, guarantee, plan."""
    model = PrivateKMeans(3, bounds=BOUNDS).fit(table())
    release = model.release_
    np.testing.assert_array_equal(model.cluster_centers_, release.centers)
    np.testing.assert_array_equal(model.cluster_sizes_, release.sizes)
    np.testing.assert_array_equal(model.noise_covariance_, release.noise_covariance)
    np.testing.assert_array_equal(model.bounds_, release.bounds)
    assert release.loss == model.inertia_
    assert str(release.guarantee) == str(model.guarantee_)
    assert release.document["plan"]["parts"] == dict(model.plan_.parts)
    assert release.feature_names == tuple(NAMES)
    assert (np.diff(release.sizes) <= 0).all()


def test_no_entry_of_a_release_has_an_item_a_row(release):
    """And none is an exact statistic of the table: sizes are no whole numbers, the mean is not there."""
    assert not any(size == round(size) for size in release.sizes)
    assert "4000" not in re.findall(r"\d+\.?\d*", release.text)
    exact = np.asarray(table()).mean(axis=0)
    assert not any(repr(float(value)) in release.text for value in exact)


def test_a_seeded_release_says_so(tmp_path):
    """In the document, in the findings, on the page."""
    with seeded_noise(1):
        release = released()
    assert release.document["seeded"]
    assert not all(finding.passed for finding in release.verify())
    assert "NOT PRIVATE" in report_page(release)
    assert "NOT PRIVATE" in (release.write(tmp_path) / "card.md").read_text()


MUTATED = st.tuples(st.integers(0, 10**9), st.integers(0, 3), st.sampled_from('0159.-eE"{}[],: ntfx\\\x00é'))


@settings(max_examples=1000)
@given(mutation=MUTATED)
def test_a_mutated_file_gives_a_clear_error_or_the_same_release(release, mutation):
    """A letter changed, put in, taken out, or the rest cut off: refused in one sentence, or equal."""
    place, kind, letter = mutation
    text, at = release.text, mutation[0] % len(release.text)
    changed = [
        text[:at] + letter + text[at + 1 :],
        text[:at] + letter + text[at:],
        text[:at] + text[at + 1 :],
        text[:at],
    ][kind]
    try:
        same, words = Release(changed).document == release.document, None
    except InvalidRelease as error:
        same, words = False, str(error)
    assert same or re.fullmatch(r"[^\n]{10,900}\.", words), (place, words)


PATHS = [
    ("version", 2), ("format", "x"), ("clusters", []), ("clusters", None), ("seeded", "no"), ("loss", "1"),
    ("loss", float("nan")), ("loss", True), ("features", [{"name": "x"}]),
    ("moments", [[1.0, 2.0], [2.0, 1.0]]), ("moments", [[1.0, 0, 0], [0, -5.0, 0], [0, 0, 1.0]]),
    ("moments", [[1.0, 9, 0], [0, 1.0, 0], [0, 0, 1.0]]),
    ("extra", 1), ("guarantee", {}), ("created", "yesterday"), ("elbow", [[1.5, 2.0]]),
    ("noise", {"kind": "pink"}),
    ("feature_weights", [1.0]), ("missing", [1.0, 2.0]), ("summary", {"counts": [1.0], "means": [[1.0]]}),
    ("clusters", [{"center": [1e6, 1, 1], "size": 1.0, "size_error": 1.0, "covariance": None}] * 3),
    ("ledger", {"dataset": "x", "entry": 0, "hash": "0" * 64}), ("public", "all"), ("version", True),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), PATHS)
def test_a_forged_document_with_a_right_checksum_is_refused_all_the_same(release, key, value):
    """The schema and the consistency of the content are checked beyond the checksum."""
    document = release.document | {key: value}
    text = json.dumps(document | {"checksum": "sha256:" + "0" * 64})
    try:
        text = canonical(document | {"checksum": checksum(document)})
    except ValueError:
        assert np.isnan(value)
    with pytest.raises(InvalidRelease):
        Release(text)


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda d: d["guarantee"].update(epsilon=1.9), "epsilon"),
        (lambda d: d["guarantee"].update(delta=1e-7), "epsilon"),
        (lambda d: d["guarantee"].update(mu=d["guarantee"]["mu"] * 1.01), "epsilon"),
        (lambda d: d["guarantee"]["draws"].update(inverse_square_sum="1/2"), "epsilon"),
        (lambda d: d["guarantee"].update(curve=[[1.0, 1e-30], [2.0, 1e-30]]), "curve"),
        (lambda d: d["clusters"][1].update(size_error=1e-6), "sizes"),
        (lambda d: d.update(bounds="learned"), "parts"),
        (lambda d: d["plan"]["parts"].update(count=0.5), "parts"),
        (lambda d: d["plan"].update(mu=d["plan"]["mu"] * 0.9), "parts"),
        (lambda d: d.update(moments=np.diag([1.0, 5e4, 9.0]).tolist()), "color"),
    ],
)
def test_verify_finds_a_promise_that_is_not_kept(release, change, check):
    """Epsilon, delta, mu, draws, parts and color are recomputed from the release alone."""
    document = release.document
    change(document)
    document.pop("checksum")
    forged = Release.from_document({k: v for k, v in document.items() if k not in ("format", "version")})
    assert check in [finding.check for finding in forged.verify() if not finding.passed]


def test_centroids_csv_has_raw_units_and_error_bars(tmp_path, release):
    """A row a cluster, names quoted, and figures that read back exactly."""
    rows = list(csv.reader(io.StringIO((release.write(tmp_path) / "centroids.csv").read_text())))
    assert rows[0][:3] == ["cluster", "size", "size (noise sd)"]
    assert rows[0][3::2] == NAMES
    np.testing.assert_array_equal(release.centers, np.array([row[3::2] for row in rows[1:]], dtype=float))
    np.testing.assert_allclose(release.error_bars, np.array([row[4::2] for row in rows[1:]], dtype=float))


def test_the_page_is_one_file_without_the_network(release):
    """Nothing is loaded, no script runs, and names are escaped."""
    page = report_page(release)
    assert not re.search(r"(src|href)\s*=|<script|@import|url\(", page)
    assert "<b>thousand</b>" not in page
    assert "&lt;b&gt;thousand&lt;/b&gt;" in page
    for heading in ("The clusters", "Sizes", "Map", "The noise", "The guarantee", "not protected"):
        assert heading in page
    assert "NaN" not in page
    assert "Undefined" not in page


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_a_release_of_next_to_no_rows_is_shown_too(tmp_path, rows):
    """Sizes of nothing, unknown error bars: everything is still written."""
    model = PrivateKMeans(4, epsilon=0.1, bounds=(-1, 1)).fit(np.zeros((rows, 2)))
    folder = model.release_.write(tmp_path)
    assert "unknown" in (folder / "report.html").read_text()


def test_the_clusters_are_described_by_what_sets_them_apart(release):
    """The largest deviations first, in raw units, with the average."""
    words = described(release)
    assert len(words) == 3
    assert words[0].startswith("About ")
    richest, busiest = (int(release.centers[:, feature].argmax()) for feature in (1, 2))
    assert f" %: high {NAMES[1]} (" in words[richest].replace("very ", "")
    assert f"high {NAMES[2]} (" in words[busiest]


def test_numbers_are_printed_for_people():
    """Three digits, thousands apart, as many decimals as the error leaves."""
    assert [number(x) for x in (0, 0.01234, 1.5, 12.34, 123.4, 12345.6, -2.5, 1e12, float("nan"))] == [
        "0", "0.0123", "1.50", "12.3", "123", "12,346", "-2.50", "1.00e+12", "unknown",
    ]  # fmt: skip
    assert pair(12.3456, 0.234) == "12.35 ± 0.23"
    assert pair(12345.6, 123.0) == "12,346 ± 123"
    assert pair(1.0, float("nan")) == "1.00 ± unknown"
    assert [rounded(x, 0.03) for x in (0.98765, -0.004, 12.0)] == ["0.99", "0.00", "12.00"]


def test_the_registry_entry_is_yaml_that_a_machine_fills_as_far_as_it_can(release):
    """Scalars are JSON, what only people know stands as TODO."""
    entry = release.to_registry()
    assert "epsilon: 2.0" in entry
    assert 'variant_name: "Approximate DP"' in entry
    assert entry.count("TODO") >= 8
    for line in entry.splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        assert value == "" or json.loads(value) is not None, key


@pytest.mark.parametrize("content", ["", "null", "[]", "{}", '{"format": "huemeans-release"}', "[" * 10**5])
def test_other_files_are_refused_in_a_sentence(tmp_path, content):
    """With the path in it."""
    path = tmp_path / "release.json"
    path.write_text(content)
    with pytest.raises(InvalidRelease, match=r"release\.json: "):
        Release.read(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidRelease, match="UTF-8"):
        Release.read(path)
    with pytest.raises(InvalidRelease, match="cannot be read"):
        Release.read(tmp_path / "none")
