"""Premises that every guarantee of a protocol with one answer per party rests on."""

from __future__ import annotations

from federation.contract.guarantee import Assumption, Check

COUNTED_ONCE = Assumption(
    "every party counts once, and a node answers for its own parties only; that a node's parties are different "
    "people is for whoever enrols them",
    Check.DECLARED,
)
ATTENDANCE = Assumption(
    "whether and when a party answers is not protected; below the quorum nothing is released", Check.DECLARED
)
LOCAL = Assumption("every party adds its noise itself and trusts nobody", Check.ENFORCED)
SUMMED = Assumption(
    "every party adds a share of the noise, and a secure summation, which is simulated here, shows the aggregator "
    "nothing but the sum over all parties",
    Check.DECLARED,
)
PUBLIC_CHOICES = Assumption("the feature map and all options were chosen without private labels", Check.DECLARED)
