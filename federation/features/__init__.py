"""Public feature maps: what rows pass before anything is learned from them."""

from typing import Any

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "feature_map": "FeatureMap completed text_code with_fourier with_polynomial",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
