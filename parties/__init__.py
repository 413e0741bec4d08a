"""The private side: the only place that sees labelled private rows."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__, {"guard.answering": "Arrays NoisyAct PlainAct", "party_data.cohort": "Cohort Holdings Provider"}
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
