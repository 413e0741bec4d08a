"""Every estimator by its name, and what nobody wrote."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aggregator.learners.class_ratios.catalogue import NAMES, estimator_class, load
from aggregator.learners.class_ratios.estimator import RatioEstimator
from federation.contract.errors import InputError


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_its_class_with_defaults(name):
    kind = estimator_class(name)
    assert issubclass(kind, RatioEstimator)
    assert kind.name == name
    assert kind().get_params() == kind(**kind().get_params()).get_params()


def test_other_names_are_refused_with_the_nearest():
    with pytest.raises(InputError, match=r"'whitend' is not known; allowed: whitened.*did you mean 'whitened'"):
        estimator_class("whitend")


@pytest.mark.parametrize(
    "description",
    [{}, {"estimator": "mmd"}, {"estimator": "mmd", "parameters": {"kernels": 1}, "values": {}}, {"estimator": None}],
)
def test_descriptions_that_nobody_wrote_are_refused(description):
    with pytest.raises(InputError, match=r"cannot be read|is not known"):
        load(description, {})


def test_asking_for_names_imports_no_estimator():
    code = (
        "import sys, aggregator.learners.class_ratios.catalogue; print({'sklearn', 'scipy', 'numpy'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
