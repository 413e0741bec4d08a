"""Cohorts of parties with rows of two classes, simulated and deployed."""

import json

from federation.contract.reference import Reference
from parties.holdings.cohort import Cohort

PARTIES = Reference(
    "support.two_class_parties:Parties", {"broken": [1], "strange": [2], "huge": [3], "doubled": [4]}
).to_json()


def cohort(first=0, count=6):
    return Cohort(PARTIES, first, count, 1)


def deployed(tmp_path, epsilon=10.0, delta=1e-3, public=True, party=0):
    allowance = json.dumps({"ledger": str(tmp_path / "spent.json"), "epsilon": epsilon, "delta": delta})
    return Cohort(PARTIES, party, 1, None, allowance, public)
