"""The common ground of parties and aggregator: guarantees, messages, mechanisms and the grids that carry them."""

import os

from federation.contract.plugins import PublicNames

# Read when Flower is imported and when Ray starts, which happens below here only; processes of theirs inherit it.
for _name in ("FLWR_TELEMETRY_ENABLED", "RAY_USAGE_STATS_ENABLED"):
    os.environ.setdefault(_name, "0")

__version__ = "0.1.0"

_PUBLIC = PublicNames(
    __name__,
    {
        "contract.guarantee": "Adjacency Assumption Check Guarantee NoGuarantee Unit",
        "contract.errors": "BudgetExceededError FederationError InputError QuorumError",
    },
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
