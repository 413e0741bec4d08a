"""Names meant for users: the page lists just those that the packages offer, and each is described, with examples."""

import importlib
import inspect
import re
import tomllib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import federation

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
LISTED = {
    found[1]: re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    for section in SECTIONS
    if (found := re.match(r"`([\w.]+)`\n", section))
}
PUBLIC = [(package, name) for package, names in LISTED.items() for name in names]
# Half a minute long; the example of docs/tutorials/own-protocol.md is run by tests/guarantees/test_added_protocol.py.
WITHOUT_EXAMPLE = {"check_protocol"}


@pytest.mark.parametrize("package", LISTED)
def test_the_page_lists_what_a_package_offers_and_so_does_tab_completion(package: str) -> None:
    found = importlib.import_module(package)
    assert sorted(LISTED[package]) == sorted(found.__all__)
    assert set(LISTED[package]) <= set(dir(found))


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_public_name_can_be_imported_and_is_described(package: str, name: str) -> None:
    found = getattr(importlib.import_module(package), name)
    if inspect.isclass(found) or inspect.isfunction(found):
        text = inspect.getdoc(found) or ""
        assert len(text) > 20
        if inspect.isfunction(found) or issubclass(found, BaseEstimator):
            assert ">>> " in text or name in WITHOUT_EXAMPLE


def test_other_names_are_refused() -> None:
    with pytest.raises(ImportError, match="calibrat"):
        exec("from federation.mechanisms import calibrat")  # as a user would misspell it


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert federation.__version__ == project["version"]
