"""Looking for installed packages takes long, so that a process does it once."""

import json
import subprocess
import sys
from typing import Any

import pytest

from aggregator.contract.registry import PROTOCOLS, TASKS, protocol_names

SOURCES = {"classes": "digits", "two": "breast_cancer", "real": "diabetes"}
OF = {
    "error_marginals": "two", "mean_operator": "two", "label_sums": "real", "private_labels": "real",
    "weighted_lba": "real", "noisy_weighted_llp": "real",
}  # fmt: skip
CODE = """\
import json, sys
from collections import Counter
from importlib import metadata as installed
whole, counted = installed.entry_points, Counter()
def counting(**selected):
    counted[selected["group"]] += 1
    return whole(**selected)
installed.entry_points = counting
from scenarios.settings.schema import resolve
documents, seen = json.load(sys.stdin), []
for document in documents:
    resolve(document)
    seen.append(dict(counted))
print(json.dumps(seen))
"""


def _document(kind: str) -> dict[str, Any]:
    return {
        "data": {"source": SOURCES[OF.get(kind, "classes")]},
        "parties": {"count": 4},
        "protocols": [{"kind": kind}, {"kind": "pooled"}],
        "privacy": {"epsilon": 1},
    }


def _scans(*kinds: str) -> list[dict[str, int]]:
    """How often each group was scanned up to the end of resolving a scenario of each of these kinds, one by one."""
    documents = json.dumps([_document(kind) for kind in kinds])
    told = subprocess.run([sys.executable, "-c", CODE], input=documents, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    found: list[dict[str, int]] = json.loads(told.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["soft_vote", "mean_operator", "label_sums"])  # one of each kind of labels
def test_a_process_scans_each_group_once_and_nothing_for_the_second_scenario(kind: str) -> None:
    first, second = _scans(kind, kind)
    assert {PROTOCOLS, TASKS} <= first.keys()  # which is what it takes to resolve one, and is seen here
    assert set(first.values()) == {1}
    assert second == first


@pytest.mark.slow
def test_all_protocols_share_the_scans_of_the_first() -> None:
    first, *others = _scans(*protocol_names(), *reversed(protocol_names()))
    assert set(first.values()) == {1}
    assert all(found == first for found in others)
