"""A release as an entry for the Differential Privacy Deployments Registry (OpenDP, NIST), in its YAML.

Software can fill what it knows: the variant, the domain, the unit, the parameters, the mechanisms.  Who
publishes, why and for whom stands as TODO, and the entry as a draft.
Its form follows https://github.com/opendp/deployments-registry-data as of 2026.
"""

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from huemeans.release import Release

_TODO: Final = "TODO"
_INDENT: Final = "  "


def registry_entry(release: "Release") -> str:
    """Return the entry as YAML."""
    content, promise = release.document, release.guarantee
    features = "; ".join(
        f"{one['name']} in [{one['lower']:.6g}, {one['upper']:.6g}]" for one in content["features"]
    )
    software = ", ".join(f"{name} {number}" for name, number in content["software"].items())
    entry = {
        "url_slug": _TODO,
        "deployment": {
            "basic": {
                "name": _TODO,
                "data_curators": [{"data_curator_name": _TODO, "data_curator_type": _TODO}],
                "description": f"K-means centroids of {content['n_clusters']['value']} clusters in "
                f"{len(content['features'])} features, with error bars, noisy sizes and a noisy loss.",
                "intended_use": _TODO,
                "data_product_type": "Machine learning model",
                "data_product_region": _TODO,
                "data_product_sector": _TODO,
                "publication_date": content["created"],
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Tables with one row a record and the features {features}. The bounds are "
                f"{'learned privately' if content['bounds'] == 'learned' else 'public'}; values beyond "
                f"them are {'clipped' if content['outside'] == 'clip' else 'dropped with their row'}.",
                "unprotected_quantities": "None of the rows. " + "; ".join(content["not_protected"]) + ".",
            },
            "privacy_loss": {
                "privacy_unit": "Person" if promise.unit.max_rows > 1 else "Row",
                "privacy_unit_details": f"Two tables are adjacent if they differ by {promise.unit}.",
                "privacy_parameters": {"epsilon": promise.epsilon, "delta": promise.delta},
                "privacy_parameters_details": f"{promise} The parts compose as Gaussian differential "
                f"privacy, mu={promise.mu:.6g} in all; the discreteness of the noise is counted in.",
            },
            "deployment_model": {
                "model_name": "Central",
                "release_type": "One release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": _TODO,
                "mechanisms": "Discrete Gaussian noise on exact integer sums of rows that are clipped on a "
                "public integer grid: counts, second moments, a tree of counts, leaf sums and Lloyd passes; "
                f"{content['noise']['kind']} noise. Sums and noise are integers, so no floating-point low "
                f"bit is released. Software: {software}.",
                "justification": _TODO,
            },
            "administrative": {"status": "Draft", "registry_authors": [_TODO], "tier": 3},
        },
    }
    return "\n".join(_lines(entry, "")) + "\n"


def _lines(value: Any, indent: str) -> list[str]:
    """Return nested mappings and lists as lines of YAML; scalars are written as JSON, which YAML contains."""
    lines: list[str] = []
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for key, item in pairs:
        head = f"{indent}-" if key is None else f"{indent}{key}:"
        if isinstance(item, dict | list):
            lines += [head, *_lines(item, indent + _INDENT)]
        else:
            lines.append(f"{head} {json.dumps(item, ensure_ascii=False)}")
    return lines
