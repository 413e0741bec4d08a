"""Cohorts of parties with rows of two classes, simulated and deployed."""

from federation.contract.plugins import Reference
from parties.party_data.cohort import Cohort

PARTIES = Reference(
    "support.two_class_parties:Parties", {"broken": [1], "strange": [2], "huge": [3], "doubled": [4]}
).to_json()


def cohort(first=0, count=6):
    return Cohort(PARTIES, first, count, 1)


def deployed(public=True):
    """One party at a site that has paid."""
    return Cohort(PARTIES, 0, 1, None, public, paid=True)
