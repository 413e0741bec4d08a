"""What `federation privacy secure-sum` tells: neighbours, thresholds, failures and costs of masked sums."""

from __future__ import annotations

from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from federation.contract.errors import InputError
from federation.contract.trust import colluders
from federation.secure_aggregation import masks as keys
from federation.secure_aggregation.plan import ADVERSARY, BITS, KEY, SAID, Roster, SumPlan, neighbourhood, planned
from scenarios.simulated.sum_costs import seconds, sum_costs, timed


def masked_sums(
    *, parties: int, corrupt: float, dropout: float, numbers: int, quorum: float | None
) -> tuple[dict[str, Any], list[str]]:
    """A record with a row for each kind of `servers`, and what to say of it.

    Of `parties` the share `corrupt` colludes, `dropout` stays away; each sends `numbers` integers. Without a `quorum`
    as many must be counted as are there when all of these stay away. Raises `InputError` where no sum can be.
    """
    bad, gone = colluders(parties, corrupt), colluders(parties, dropout)
    share = (parties - gone - 0.5) / parties if quorum is None else quorum  # rounds up to all who are there
    roster = Roster((bytes(KEY),) * parties)
    rows: list[dict[str, Any]] = []
    least = contributors = 0
    for servers, adversary in ADVERSARY.items():
        two = servers == "two"
        second = keys.public(X25519PrivateKey.generate()) if two else b""
        try:
            plan = planned("00" * KEY, roster, numbers, share, dropout, corrupt, adversary, second)
        except InputError as error:
            if two:
                raise
            rows.append({"servers": servers} | dict.fromkeys(_COLUMNS) | {"note": str(error)})
            continue
        least, contributors = plan.least, plan.contributors
        rows.append({"servers": servers} | _chances(plan, bad, gone) | _costs(plan, dropout) | {"note": ""})
    record: dict[str, Any] = {"parties": parties, "colluding": bad, "absent": gone, "numbers": numbers}
    record |= {"least_counted": least, "contributors": contributors, "deviation": (parties / contributors) ** 0.5}
    text = [
        f"In a scenario {', '.join(f'servers: {servers} is {who}' for servers, who in SAID.items())}.",
        f"{contributors} honest shares are the whole noise, so that all {parties} have {record['deviation']:.3g} times "
        "its standard deviation.",
        "corrupt, few and cut are base-2 logarithms of what may fail for all parties together: that one has more "
        f"corrupt neighbours than planned (an active server may try many rings: {BITS['active']} bits), that one has "
        "fewer than the threshold left, that the ring falls apart. Who is one of too many neighbours reveals a part.",
        "Seconds are of this machine, of one core: how often each operation is needed times what it took just now; "
        "Python adds a tenth to a third. A party's are its own, a server's those of all parties together.",
    ]
    return {**record, "modes": rows}, text


_COLUMNS = (
    *("neighbours", "threshold", "corrupt", "few", "cut"),
    *("party_seconds", "party_sends", "party_receives", "server_seconds", "server_receives", "server_sends"),
)


def _chances(plan: SumPlan, bad: int, gone: int) -> dict[str, Any]:
    if plan.second:
        return dict.fromkeys(_COLUMNS[:5])
    found = neighbourhood(plan.parties, bad, gone, plan.adversary)
    logs = (found.log_corrupt, found.log_absent, found.log_cut)
    shown = (None if log == float("-inf") else round(log, 1) for log in logs)
    return dict(zip(_COLUMNS[:5], (found.neighbours, found.threshold, *shown), strict=True))


def _costs(plan: SumPlan, dropout: float) -> dict[str, Any]:
    """The second server's work counts as the server's."""
    costs, times = sum_costs(plan, dropout), timed(plan)
    there = plan.parties * (1 - dropout if plan.second else 1)
    party, server = seconds(costs.party, times), seconds(costs.server, times) + seconds(costs.second, times)
    received, sent = there * (costs.up + costs.across), there * costs.down
    found = (party, round(costs.up), round(costs.down), there * server, round(received), round(sent))
    return dict(zip(_COLUMNS[5:], found, strict=True))
