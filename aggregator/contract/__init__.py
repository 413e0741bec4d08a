"""The contract between protocols and the aggregator: declarations, sessions, worst cases, ledger of releases."""

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
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
