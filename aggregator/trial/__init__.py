"""The public side of one trial, that is one split of the data: its plan, its numbers, its rows behind feature maps."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "feature_fitting": "fit",
        "plan": "PublicTable VariantPlan TrialPlan PublicNumbers product",
        "public_rows": "PublicRows",
        "trial": "World",
    },
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
