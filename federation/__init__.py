"""The common ground of parties and aggregator: guarantees, messages, mechanisms and the grids that carry them."""

from typing import Any

from federation.contract.public import PublicNames

__version__ = "0.1.0"

_PUBLIC = PublicNames(
    __name__,
    {
        "contract.guarantee": "Adjacency Assumption Check Guarantee NoGuarantee Unit",
        "contract.errors": "BudgetExceededError FederationError InputError QuorumError",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
