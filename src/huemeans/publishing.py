"""A release as files: release.json, centroids.csv, card.md and report.html.

Each file is written beside its place and moved there whole, release.json last: a folder with a release.json
has everything.
"""

import csv
import io
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from huemeans.report.page import report_page
from huemeans.report.words import described, number

if TYPE_CHECKING:
    from huemeans.release import Release


def write_release(release: "Release", folder: Path) -> Path:
    """Write all files of a release; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts(release).items():
        _write(folder / name, text)
    return folder


def texts(release: "Release") -> dict[str, str]:
    """Return what each file of a release holds, release.json last."""
    return {
        "centroids.csv": centroids_csv(release),
        "card.md": model_card(release),
        "report.html": report_page(release),
        "release.json": release.text,
    }


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with beside.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def centroids_csv(release: "Release") -> str:
    """Return the centroids in raw units with the standard deviation of their noise; empty if unknown."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    heads = [f"{name}{end}" for name in release.feature_names for end in ("", " (noise sd)")]
    table.writerow(["cluster", "size", "size (noise sd)", *heads])
    rows = zip(release.centers, release.sizes, release.error_bars, strict=True)
    for at, (center, size, bars) in enumerate(rows, start=1):
        cells = np.stack([center, bars], axis=1).ravel()
        figures = (size, release.size_error, *cells)
        table.writerow([at, *(repr(float(x)) if np.isfinite(x) else "" for x in figures)])
    return text.getvalue()


def model_card(release: "Release") -> str:
    """Return a short description for people who use the centroids, in Markdown."""
    content, promise = release.document, release.guarantee
    chosen = content["n_clusters"]
    how = "given" if chosen["chosen"] == "given" else f"chosen in {chosen['range']} on the private summary"
    software = ", ".join(f"{name} {version}" for name, version in content["software"].items())
    lines = [
        "# Clusters published under differential privacy",
        "",
        str(promise),
        "",
        f"- **Clusters**: {chosen['value']} ({how})",
        f"- **Features**: {len(release.feature_names)}, bounds {content['bounds']}",
        f"- **Loss**: {number(release.loss)}, the noisy sum of squared distances to the nearest centroid",
        f"- **Noise**: {content['noise']['kind']}; sizes have an sd of {number(release.size_error)} rows",
        f"- **Made**: {content['created']} with {software}",
    ]
    if content["ledger"] is not None:
        entry = content["ledger"]
        lines.append(f"- **Budget**: entry {entry['entry']} of the ledger of {entry['dataset']!r}")
    lines += ["", "## The clusters", ""]
    lines += [f"{at}. {words}" for at, words in enumerate(described(release), start=1)]
    lines += ["", "## What is public", "", *(f"- {words}" for words in content["public"])]
    lines += ["", "## What is not protected", "", *(f"- {words}" for words in content["not_protected"])]
    return "\n".join(lines) + "\n"
