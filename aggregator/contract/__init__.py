"""What a protocol says of itself, and what an aggregator does with it."""

from typing import Any

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "ledger": "Budget Ledger",
        "option_rules": "refuse_misplaced require_positive",
        "perturbable": "LinearScores Perturbable",
        "premises": "local_guarantee",
        "promise": "Promise Sent",
        "protocol": "Place Protocol Refused Requires Trust",
        "registry": "protocol_named=protocol protocol_names",
        "session": "Asked OneRound Session",
        "task": "Metric Task",
        "worst_case": "PrivateWorstCase Rows TrustedWorstCase WorstCase",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
