"""What a protocol says of itself, and what an aggregator does with it."""

from typing import Any

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "ledger": "Budget Ledger local_guarantee",
        "protocol": "refuse_misplaced require_positive Promise Sent Place Protocol Refused Requires Trust Metric Task",
        "session": "LinearScores Perturbable Asked OneRound RoundsOfNoise RoundValue Session",
        "registry": "protocol_named=protocol protocol_names",
        "worst_case": "PrivateWorstCase Rows TrustedWorstCase WorstCase",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
