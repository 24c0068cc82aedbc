"""Which module may import which."""

import ast
import sys
from pathlib import Path

import pytest

import huemeans

SOURCE = Path(huemeans.__file__).parent
CORE = {"errors", "checks"}
ARROWS = {
    "errors": set(),
    "checks": {"errors"},
    "calibrate": {"checks"},
    "discretization": {"checks", "calibrate"},
    "ellipsoid": {"checks"},
    "leave_one_out": CORE,
    "budget": {"checks", "errors", "discretization"},
    "guarantee": {"checks", "calibrate"},
    "clip_shape": set(),
    "box": {"checks", "kernels"},
    "chunks": set(),
    "domain": {*CORE, "chunks", "raw_kernels"},
    "fold": {"box", "checks", "chunks", "distributed", "kernels", "lattice", "regions", "spool"},
    "compiling": set(),
    "kernels": {"compiling", "raw_kernels"},
    "raw_kernels": {"compiling"},
    "distributed": {"chunks", "domain"},
    "engines.dask": {"checks", "distributed", "errors", "frames"},
    "engines.spark": {"checks", "distributed", "errors"},
    "frames": {"sources"},
    "inputs": {"checks", "distributed", "engines", "sources", "spool"},
    "regions": {"checks", "kernels", "lattice"},
    "baselines.common": {"checks", "domain"},
    "baselines.dp_lloyd": {"baselines.common"},
    "baselines.fast_lloyd": {"baselines.common", "calibrate"},
    "baselines.balcan2017": {"baselines.common", "checks"},
    "baselines.lu2020": {"baselines.balcan2017", "baselines.common", "checks"},
    "baselines.xia2020": {"baselines.common"},
    "baselines.white": {"baselines.common", "calibrate", "checks"},
    "cli.budget": {"cli.common", "guarantee", "ledger"},
    "cli.common": {"errors"},
    "cli.compare": {"cli.common", "cli.fit", "comparison", "domain", "errors"},
    "cli.demo": {"cli.common", "cli.fit", "customers", "errors", "guarantee", "ledger"},
    "cli.fit": {"cli.common", "errors", "private", "report.words", "sources"},
    "cli.shows": {
        "cli.common",
        "errors",
        "finding",
        "forecast",
        "ledger",
        "private",
        "publishing",
        "release",
        "report.page",
    },
    "__main__": {"cli"},
    "cli.paper": {"cli.common", "errors", "paper.campaign", "paper.section"},
    "paper.campaign": {"errors"},
    "paper.claims": {"paper.campaign", "paper.clusters", "paper.schemes"},
    "paper.clusters": {"baselines.common", "paper.campaign"},
    "paper.figures": {"paper.campaign", "paper.clusters", "paper.schemes"},
    "paper.schemes": {
        "baselines.balcan2017",
        "baselines.common",
        "calibrate",
        "ellipsoid",
        "leave_one_out",
        "lemma",
        "paper.clusters",
        "private",
    },
    "paper.section": {
        "baselines.common",
        "paper.campaign",
        "paper.claims",
        "paper.clusters",
        "paper.figures",
        "paper.schemes",
    },
    "color_gap": set(),
    "comparison": {
        "baselines.balcan2017",
        "baselines.common",
        "baselines.dp_lloyd",
        "baselines.fast_lloyd",
        "baselines.lu2020",
        "baselines.white",
        "baselines.xia2020",
        "errors",
        "private",
        "tailored",
    },
    "customers": set(),
    "finding": set(),
    "sources": {"checks", "errors", "spool"},
    "spool": set(),
    "description": {"color_gap", "discretization", "domain", "guarantee", "ledger", "pipeline", "settings"},
    "settings": {"checks", "distributed", "domain", "guarantee", "planning", "spool"},
    "ledger": {*CORE, "budget", "calibrate", "discretization", "guarantee"},
    "release_format": {"errors"},
    "release": {
        "color_gap",
        "discretization",
        "errors",
        "finding",
        "guarantee",
        "planning",
        "publishing",
        "registry",
        "release_format",
    },
    "registry": set(),
    "publishing": {"report.page", "report.words"},
    "report.page": {"color_gap", "report.charts", "report.words"},
    "report.charts": {"color_gap", "report.svg", "report.words"},
    "report.svg": set(),
    "report.words": set(),
    "learned_bounds": {"checks", "chunks", "distributed", "raw_kernels", "spool", "lattice", "mechanism"},
    "mechanism": {"budget", "entropy", "fold", "guarantee", "lattice", "noise"},
    "persons": {"checks"},
    "planning": {"box", "budget", "checks", "discretization", "learned_bounds"},
    "pipeline": {
        "box",
        "clip_shape",
        "distributed",
        "domain",
        "fold",
        "lattice",
        "mechanism",
        "planning",
        "spool",
        "starts",
        "summary",
        "tree",
    },
    "private": {
        "budget",
        "checks",
        "clip_shape",
        "discretization",
        "distributed",
        "domain",
        "errors",
        "entropy",
        "fold",
        "guarantee",
        "frames",
        "inputs",
        "kernels",
        "description",
        "lattice",
        "learned_bounds",
        "ledger",
        "mechanism",
        "noise",
        "persons",
        "release",
        "settings",
        "spool",
        "pipeline",
        "planning",
        "uncertainty",
    },
    "forecast": {"budget", "checks", "clip_shape", "guarantee", "planning"},
    "starts": set(),
    "summary": {"box"},
    "tree": {"box"},
    "uncertainty": set(),
    "lattice": {"checks"},
    "entropy": set(),
    "sampler": {"checks", "entropy"},
    "noise": {*CORE, "budget", "discretization", "entropy", "sampler"},
    "lemma": CORE,
    "row_risk": {"calibrate"},
    "tailored": {
        *CORE,
        "calibrate",
        "ellipsoid",
        "entropy",
        "guarantee",
        "leave_one_out",
        "lemma",
        "noise",
        "row_risk",
    },
    "testing": {"checks", "entropy"},
}
"""Every module and what it may import of this package: the proof can be read module by module."""

WITH_OTHERS = {
    "engines.dask",
    "engines.spark",
    "frames",
    "inputs",
    "baselines.balcan2017",
    "baselines.common",
    "baselines.white",
    "comparison",
    "paper.clusters",
    "paper.figures",
    "paper.schemes",
    "paper.section",
    "pipeline",
    "private",
    "release_format",
    "report.page",
    "settings",
    "sources",
    "starts",
    "summary",
    "tailored",
}
WITHOUT_SKLEARN = {name for name in ARROWS if not name.startswith("cli")} - WITH_OTHERS
"""Privacy-critical modules and what they stand on: none imports scikit-learn."""


def imports(path):
    """Return the absolute names that a module imports, wherever in it they stand; for types alone is free."""
    tree = ast.parse(path.read_text())
    for node in [node for node in ast.walk(tree) if isinstance(node, ast.If)]:
        if ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            if node.module == "huemeans":
                yield from (f"huemeans.{alias.name}" for alias in node.names)
            else:
                yield node.module


def modules():
    """Return the name and the path of every module but the package's front."""
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__init__.py"
    }


@pytest.mark.parametrize("name", modules())
def test_a_module_imports_only_what_its_arrows_allow(name):
    """No module is without arrows, and none reaches beyond them."""
    own = {i.removeprefix("huemeans.") for i in imports(modules()[name]) if i.startswith("huemeans.")}
    assert own <= ARROWS[name]


@pytest.mark.parametrize("name", sorted(WITHOUT_SKLEARN))
def test_privacy_critical_modules_do_without_scikit_learn(name):
    """Their only foreign imports are numpy and scipy, threadpoolctl to count threads, and numba for loops."""
    foreign = (
        {i.split(".")[0] for i in imports(modules()[name])} - set(sys.stdlib_module_names) - {"huemeans"}
    )
    other = {"chunks": {"threadpoolctl"}, "compiling": {"numba"}}.get(name, set())
    assert foreign <= {"numpy", "scipy"} | other


def test_private_names_of_other_libraries_are_never_imported():
    """Public names only, of scikit-learn above all."""
    for path in modules().values():
        for name in imports(path):
            assert not any(part.startswith("_") for part in name.split(".") if part != "__future__")


def test_arrows_have_no_cycle():
    """The modules can be read one after the other."""
    done = set()
    arrows = {name: needs - {"cli", "engines"} for name, needs in ARROWS.items()}
    while len(done) < len(arrows):
        ready = {name for name, needs in arrows.items() if name not in done and needs <= done}
        assert ready
        done |= ready


def test_every_arrow_is_drawn_for_a_module_that_exists():
    """The table of arrows and the source tree name the same modules."""
    assert set(modules()) == set(ARROWS)
