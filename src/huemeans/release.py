"""A release: what a private fit publishes, as one document that can be read back, checked and shown.

Guarantees (each has a test of its name):

* a release read back equals the one written;
* what is not a release of a known version, was changed after it was written, or contradicts itself is
  refused with a sentence that says where;
* the document holds noised numbers, functions of them and public facts: no pickle, nothing that a row
  computed bare, and no hash of rows.  The checksum is that of the document itself.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from huemeans.color_gap import color_gap, white_gap
from huemeans.discretization import Draws, real_delta, real_epsilon
from huemeans.errors import HuemeansError, InvalidRelease
from huemeans.finding import Finding
from huemeans.guarantee import Guarantee, PrivacyUnit
from huemeans.planning import split_pass
from huemeans.release_format import FORMAT, VERSION, canonical, checksum, read_document

Floats = NDArray[np.float64]

FILE_NAME: Final = "release.json"

_MOST_BYTES: Final = 256 * 2**20
_ROUNDING: Final = 1e-9
_SCALES: Final = (
    1e-5  # what rounding the scales of counts and sums up to whole numbers may shift between them
)


@dataclass(frozen=True)
class Release:
    """A published clustering: centroids with error bars, their guarantee and how it was kept.

    Take it from ``PrivateKMeans(...).fit(X).release_``, write it with ``write``, read it with ``read``.
    """

    text: str
    """The document as JSON."""

    def __post_init__(self) -> None:
        """Refuse what is not a consistent release."""
        object.__setattr__(self, "text", canonical(read_document(self.text)))

    @classmethod
    def from_document(cls, content: Mapping[str, Any]) -> Self:
        """Make a release of plain JSON content; format, version and checksum are added."""
        document = {"format": FORMAT, "version": VERSION} | dict(content)
        document["checksum"] = checksum(document)
        return cls(canonical(document))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read ``release.json``, or the folder it lies in."""
        place = Path(path)
        place = place / FILE_NAME if place.is_dir() else place
        try:
            size = place.stat().st_size
            content = place.read_bytes() if size <= _MOST_BYTES else b""
        except OSError as error:
            raise InvalidRelease(f"{place} cannot be read: {error.strerror}.") from None
        if size > _MOST_BYTES:
            raise InvalidRelease(f"{place} is too large for a release: more than {_MOST_BYTES} bytes.")
        try:
            return cls(content.decode("utf-8"))
        except UnicodeDecodeError:
            raise InvalidRelease(f"{place} is no text in UTF-8.") from None
        except InvalidRelease as error:
            raise InvalidRelease(f"{place}: {error}") from None

    @property
    def document(self) -> dict[str, Any]:
        """A fresh copy of the whole content."""
        parsed: dict[str, Any] = json.loads(self.text)
        return parsed

    @cached_property
    def _content(self) -> dict[str, Any]:
        return self.document

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the features."""
        return tuple(feature["name"] for feature in self._content["features"])

    @property
    def bounds(self) -> Floats:
        """(2, d): the public or learned bounds."""
        return np.array([[f[end] for f in self._content["features"]] for end in ("lower", "upper")])

    @property
    def centers(self) -> Floats:
        """(K, d), raw units."""
        return np.array([cluster["center"] for cluster in self._content["clusters"]])

    @property
    def sizes(self) -> Floats:
        """(K,): noisy numbers of rows."""
        return np.array([cluster["size"] for cluster in self._content["clusters"]])

    @property
    def size_error(self) -> float:
        """The standard deviation of the noise in each size."""
        return float(self._content["clusters"][0]["size_error"])

    @property
    def noise_covariance(self) -> Floats:
        """(K, d, d) of each centroid's error; NaN where the size is not known well enough."""
        d = len(self.feature_names)
        unknown = np.full((d, d), np.nan)
        found = [cluster["covariance"] for cluster in self._content["clusters"]]
        return np.array([unknown if one is None else one for one in found])

    @property
    def error_bars(self) -> Floats:
        """(K, d): the standard deviation of the noise in each coordinate of each centroid."""
        return np.sqrt(np.diagonal(self.noise_covariance, axis1=1, axis2=2))

    @property
    def noise_shape(self) -> Floats:
        """(d, d): the covariance of the noise in a cluster's sum, up to a factor."""
        return np.array(self._content["noise"]["shape"])

    @property
    def moments(self) -> Floats:
        """(d, d): the private second moment within clusters that colors the noise."""
        return np.array(self._content["moments"])

    @property
    def lengths(self) -> Floats:
        """(d,): the length of a raw unit along each feature, as distance is measured."""
        low, high = self.bounds
        return 1 / (high - low) if self._content["scale"] == "bounds" else np.ones(len(low))

    @property
    def color_gap(self) -> float:
        """By what share the noise costs more than noise of the best color."""
        scaled = self.lengths * self.lengths[:, None]
        return color_gap(self.noise_shape * scaled, self.moments * scaled, self.feature_weights)

    @property
    def white_gap(self) -> float:
        """By what share white noise with the same privacy would cost more than noise of the best color."""
        scaled = self.lengths * self.lengths[:, None]
        return white_gap(self.moments * scaled, self.feature_weights)

    @property
    def feature_weights(self) -> Floats | None:
        """(d,), or None if all features matter the same."""
        given = self._content["feature_weights"]
        return None if given is None else np.array(given)

    @property
    def loss(self) -> float:
        """A noisy sum of squared distances to the nearest centroid."""
        return float(self._content["loss"])

    @property
    def elbow(self) -> dict[int, float]:
        """The loss of the private summary for each K that was tried."""
        return {int(k): float(loss) for k, loss in self._content["elbow"]}

    @property
    def summary(self) -> tuple[Floats, Floats]:
        """Counts (m,) and means (m, d) of the heaviest leaves of the private summary."""
        found = self._content["summary"]
        return np.array(found["counts"]), np.array(found["means"])

    @property
    def guarantee(self) -> Guarantee:
        """The promise."""
        said = self._content["guarantee"]
        return Guarantee(
            "dp",
            said["epsilon"],
            said["delta"],
            PrivacyUnit(said["neighbors"], said["max_rows_per_person"]),
            mu=said["mu"],
            fixed=tuple(said["fixed"]),
            seeded=self._content["seeded"],
        )

    @property
    def draws(self) -> Draws:
        """The discrete Gaussians that the guarantee is charged for."""
        said = self._content["guarantee"]["draws"]
        return Draws(said["count"], Fraction(said["inverse_square_sum"]))

    def verify(self) -> list[Finding]:
        """Recompute what the release says of itself, from its own numbers and nothing else."""
        return [
            Finding("schema", True, f"a {FORMAT} of version {VERSION}, whole, with its own checksum"),
            self._epsilon_finding(),
            self._curve_finding(),
            self._parts_finding(),
            self._sizes_finding(),
            self._gap_finding(),
            Finding(
                "noise",
                not self._content["seeded"],
                "fresh from the operating system"
                if not self._content["seeded"]
                else "seeded: whoever knows the seed can subtract it, so this is NOT PRIVATE",
            ),
        ]

    def _epsilon_finding(self) -> Finding:
        said = self._content["guarantee"]
        try:
            found = real_epsilon(said["mu"], said["delta"], self.draws)
        except HuemeansError as error:
            return Finding("epsilon", passed=False, words=str(error))
        kept = found <= said["epsilon"] * (1 + _ROUNDING) or (
            real_delta(said["mu"], said["epsilon"], self.draws) <= said["delta"] * (1 + _ROUNDING)
        )
        return Finding(
            "epsilon",
            kept,
            f"mu={said['mu']:.9g} keeps epsilon={found:.6g} at delta={said['delta']:g}, the discreteness of "
            f"{self.draws.count} draws included; epsilon={said['epsilon']:g} was declared",
        )

    def _curve_finding(self) -> Finding:
        said = self._content["guarantee"]
        try:
            kept = [(delta, real_delta(said["mu"], at, self.draws)) for at, delta in said["curve"]]
        except HuemeansError as error:
            return Finding("curve", passed=False, words=str(error))
        right = all(delta * (1 + _ROUNDING) >= found for delta, found in kept)
        words = f"delta at {len(kept)} epsilons is {'' if right else 'not '}what the noise keeps"
        return Finding("curve", right, words)

    def _sizes_finding(self) -> Finding:
        """Compare the noise of the sizes with what the last pass can have paid for."""
        parts, said = self._content["plan"]["parts"], self._content["guarantee"]
        passes = [name for name in parts if re.fullmatch(r"pass [1-9]", name)]
        paid = split_pass(Fraction(parts[max(passes)]) ** 2)[0] if passes else Fraction(0)
        times = 1 if said["neighbors"] == "add-remove" else 2
        least = math.sqrt(times / float(paid)) if paid else math.inf
        right = all(one["size_error"] >= least * (1 - _SCALES) for one in self._content["clusters"])
        words = f"sizes have a noise of {self.size_error:.4g} rows; the last pass pays for {least:.4g}"
        return Finding("sizes", right, words)

    def _parts_finding(self) -> Finding:
        plan, said = self._content["plan"], self._content["guarantee"]
        total = float(np.sqrt(sum(part**2 for part in plan["parts"].values())))
        whole = plan["mu"] * said["max_rows_per_person"]
        right = abs(total - plan["mu"]) <= _ROUNDING * plan["mu"] and whole <= said["mu"] * (1 + _ROUNDING)
        right &= all(plan["parts"].get(name, 0) > 0 for name in ("count", "pass 1", "loss"))
        right &= (plan["parts"].get("bounds", 0) > 0) == (self._content["bounds"] == "learned")
        right &= self.draws.count >= len(plan["parts"])
        return Finding("parts", right, f"the parts make mu={total:.9g} a row; {plan['mu']:.9g} was set aside")

    def _gap_finding(self) -> Finding:
        found = self.color_gap
        said = self._content["noise"]["gap"]
        return Finding(
            "color",
            found <= said + 1e-9 * (1 + said),
            f"the noise costs {100 * found:.3g} % more than noise of the best color; {100 * said:.3g} % said",
        )

    def to_registry(self) -> str:
        """Return an entry for the Differential Privacy Deployments Registry, as YAML, to be completed."""
        from huemeans.registry import registry_entry  # noqa: PLC0415  # it shows releases: the other way

        return registry_entry(self)

    def write(self, folder: str | Path) -> Path:
        """Write release.json, centroids.csv, card.md and report.html into a folder, one by one and whole."""
        from huemeans.publishing import write_release  # noqa: PLC0415  # the same

        return write_release(self, Path(folder))
