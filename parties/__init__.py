"""The private side: the only place that sees labelled private rows."""

from typing import Any

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "guard.answering": "Arrays NoisyAct PlainAct",
        "party_data.cohort": "Cohort Holdings Provider",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
