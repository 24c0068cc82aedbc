"""How a release is written as JSON, and what is refused when one is read.

The schema is ``release.schema.json``.  Beyond it, the checksum must be that of the content, numbers must be
finite, names unique, matrices of the right size and covariances covariances.
"""

import hashlib
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import numpy as np

from huemeans.errors import InvalidRelease

FORMAT: Final = "huemeans-release"
VERSION: Final = 1

_SYMMETRY: Final = 1e-6
_SHOWN: Final = 200


def read_document(text: str) -> dict[str, Any]:
    """Return the content of a release, or raise with what is wrong with it."""
    document = _parsed(text)
    _check_schema(document)
    _check_checksum(document)
    _check_consistency(document)
    return document


def canonical(document: Mapping[str, Any]) -> str:
    """Return the document as JSON with sorted keys, an entry a line."""
    lines = [
        f"{json.dumps(key)}: {json.dumps(document[key], sort_keys=True, allow_nan=False)}"
        for key in sorted(document)
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def checksum(document: Mapping[str, Any]) -> str:
    """Return the checksum of a document without its checksum."""
    content = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _parsed(text: str) -> dict[str, Any]:
    def constant(word: str) -> float:
        raise InvalidRelease(f"it holds {word}, which is no number in JSON.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise InvalidRelease("it names an entry twice.")
        return dict(pairs)

    try:
        found = json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InvalidRelease(f"it is no JSON: {error.msg}, line {error.lineno}.") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, InvalidRelease):
            raise
        raise InvalidRelease("it is no JSON that a release could be.") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InvalidRelease(f"it is no release: its format is not {FORMAT!r}.")
    if found.get("version") != VERSION or isinstance(found["version"], bool):
        raise InvalidRelease(f"its version is not {VERSION}, the one that this program reads.")
    return found


def _check_schema(document: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator  # noqa: PLC0415  # slow to import
    from jsonschema.exceptions import best_match  # noqa: PLC0415

    schema = json.loads(files("huemeans").joinpath("release.schema.json").read_text())
    error = best_match(Draft202012Validator(schema).iter_errors(document))
    if error is not None:
        where = "".join(f"[{step!r}]" for step in error.absolute_path) or "the document"
        rule = f"{error.validator}: {json.dumps(error.validator_value)[:_SHOWN]}"
        raise InvalidRelease(f"{where[:_SHOWN]} does not follow the schema ({rule}).")


def _check_checksum(document: dict[str, Any]) -> None:
    try:
        right = document["checksum"] == checksum(document)
    except ValueError:
        raise InvalidRelease("it holds a number that is not finite.") from None
    if not right:
        raise InvalidRelease("it was changed after it was written: its checksum is not that of its content.")


def _check_consistency(document: dict[str, Any]) -> None:
    d, k = len(document["features"]), document["n_clusters"]["value"]
    clusters, summary = document["clusters"], document["summary"]
    matrices = [("moments", document["moments"]), ("noise", document["noise"]["shape"])]
    matrices += [("clusters", one["covariance"]) for one in clusters if one["covariance"] is not None]
    vectors = [(name, document[name]) for name in ("missing", "feature_weights")]
    _check_shape("clusters", [cluster["center"] for cluster in clusters], (k, d))
    _check_shape("summary", summary["means"], (len(summary["counts"]), d))
    for name, value in vectors:
        if isinstance(value, list):
            _check_shape(name, value, (d,))
    for name, value in matrices:
        _check_shape(name, value, (d, d))
        if not _is_covariance(value):
            raise InvalidRelease(f"['{name}'] has a covariance that is not symmetric or not positive.")
    low, high = np.array([[one["lower"], one["upper"]] for one in document["features"]]).T
    centers, room = np.array([cluster["center"] for cluster in clusters]), _SYMMETRY * (high - low)
    if ((centers < low - room) | (centers > high + room)).any():
        raise InvalidRelease("['clusters'] has a center beyond the bounds.")
    names = [feature["name"] for feature in document["features"]]
    if len(set(names)) < d or any(not f["lower"] < f["upper"] for f in document["features"]):
        raise InvalidRelease("['features'] has a name twice, or bounds of no width.")


def _check_shape(name: str, value: list[Any], shape: tuple[int, ...]) -> None:
    nested = isinstance(value[0], list)
    found = (len(value), *({len(row) for row in value} if nested else ()))
    if found != shape:
        raise InvalidRelease(f"['{name}'] has another number of entries than features and clusters ask for.")


def _is_covariance(value: list[list[float]]) -> bool:
    matrix = np.array(value, dtype=np.float64)
    largest = np.abs(matrix).max()
    if not np.isfinite(largest) or np.abs(matrix - matrix.T).max() > _SYMMETRY * largest:
        return False
    return bool(np.linalg.eigvalsh(matrix)[0] >= -_SYMMETRY * largest)
