"""Mutants of a small project: killed by its tests and examples, alive where it has none, ended where they never end."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULE = '''"""Doubles.

>>> from steps.doubling import doubled
>>> doubled(0)
0
"""

def doubled(number):
    while number > 10:
        number -= 1
    return number + number
'''
TEST = """
from hypothesis import given, strategies as st
from steps.doubling import doubled

@given(st.integers(1, 5))
def test_it_doubles(number):
    assert doubled(number) == 2 * number

def test_it_is_bounded():
    assert doubled(12) == 20
"""
CODE = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.mutants.mutant import Mutant
from benchmarks.mutants import trials

trials._LEAST_SECONDS, trials._ENOUGH = 2, 2
root = Path.cwd()
source = (root / "steps/doubling.py").read_text()
changes = [("number + number", "number * 2"), ("number + number", "number * number"), ("> 10", "> 11"),
           ("-= 1", "-= 0"), ("number + number", "number + number or 1"), ("number > 10", "number >")]
some = [Mutant("steps/doubling.py", 1, was, becomes, source.replace(was, becomes)) for was, becomes in changes]
tests = ["steps/doubling.py", "tests/test_doubling.py"]
for mutant, outcome in trials.Trials(root, 3).outcomes(iter(some), tests):
    print(some.index(mutant), outcome)
assert (root / "steps/doubling.py").read_text() == source
"""


@pytest.fixture
def project(tmp_path):
    for folder in ("steps", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "steps" / "doubling.py").write_text(MODULE)
    (tmp_path / "tests" / "test_doubling.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --doctest-modules --import-mode=importlib\n")
    return tmp_path


def tried(project):
    return subprocess.run([sys.executable, "-c", CODE], cwd=project, capture_output=True, text=True, check=False)


def test_what_no_test_notices_survives_and_all_else_is_killed(project):
    told = tried(project)
    assert sorted(told.stdout.splitlines()) == [
        "0 survived",  # it is the same
        "1 killed",  # by the property
        "2 killed",  # by the test after it
        "3 timed out",
        "4 killed",  # by the example alone
        "5 killed",  # it cannot be loaded
    ], told.stderr


def test_tests_that_fail_by_themselves_try_nothing(project):
    (project / "tests" / "test_doubling.py").write_text("def test_it_fails():\n    assert False\n")
    told = tried(project)
    assert told.stdout == ""
    assert re.search(r"RuntimeError.*error.*steps/doubling\.py.*tests/test_doubling\.py", told.stderr)
