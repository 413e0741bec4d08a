"""What is imported from elsewhere is required, or comes with what is: a fresh environment has nothing else."""

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PRODUCT = ("federation", "parties", "aggregator", "scenarios")
OTHERS = ("benchmarks", "tests")
IMPORT = re.compile(r"^ *(?:import (?=[\w.]+(?: as \w+)?$)|from (?=[\w.]+ import ))([a-z_]\w*)", re.M)
# Of modules whose distributions may not be installed here, and have another name.
NAMES = {"cosmic_ray": "cosmic-ray", "mlflow": "mlflow-skinny"}


def required() -> set[str]:
    """Distributions that are required, the optional ones with them, and all that these bring."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    left = [*project["dependencies"], *chain.from_iterable(extras.values())]
    found: set[str] = set()
    while left:
        one = Requirement(left.pop())
        name = canonicalize_name(one.name)
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        try:
            left += requires(name) or []
        except PackageNotFoundError:  # an optional one that is not here
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("folders", [PRODUCT, OTHERS], ids=["product", "others"])
def test_every_import_is_required(folders: tuple[str, ...]) -> None:
    known, providers = required(), packages_distributions()
    own = {*PRODUCT, *OTHERS, "steps", *(path.stem for path in (ROOT / "tests").rglob("*"))}
    lacking = set()  # steps: a package that a test writes
    for path in chain.from_iterable((ROOT / folder).rglob("*.py") for folder in folders):
        for name in {*IMPORT.findall(path.read_text(encoding="utf-8"))} - own - sys.stdlib_module_names:
            if not known & {canonicalize_name(one) for one in providers.get(name, [NAMES.get(name, name)])}:
                lacking.add((str(path.relative_to(ROOT)), name))
    assert not lacking


def test_an_import_inside_a_function_counts() -> None:
    assert IMPORT.findall("def f():\n    import psutil.tests as t\n    from flwr import y\nfrom . import z\n") == [
        "psutil",
        "flwr",
    ]
