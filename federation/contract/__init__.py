"""The contract of aggregator and parties: guarantees, queries, responses, limits, randomness, errors and plugins."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "query": (
            "Declared Limits OFF Field Noise PrivateQuestion PublicQuestion Question ReleaseId "
            "RoundQuestion TrustedQuestion Submission"
        ),
        "errors": "BudgetExceededError FederationError InputError QuorumError",
        "guarantee": "Adjacency Assumption Check Guarantee Keeper NoGuarantee Unit",
        "randomness": "NoiseBits generator",
        "plugins": "Reference",
    },
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
