"""What both sides hold to: guarantees, questions, answers, limits, randomness, errors, and what is installed."""

from typing import Any

from federation.contract.public import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "declared": "Declared",
        "errors": "BudgetExceededError FederationError InputError QuorumError",
        "guarantee": "Adjacency Assumption Check Guarantee Keeper NoGuarantee Unit",
        "limits": "Limits",
        "question": "OFF Field Noise PrivateQuestion PublicQuestion Question ReleaseId TrustedQuestion",
        "randomness": "NoiseBits generator",
        "reference": "Reference",
        "submission": "Submission",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
