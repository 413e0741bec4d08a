"""Public feature maps, through which parties and aggregator pass rows before they learn from them."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(__name__, {"feature_map": "FeatureMap completed text_code with_fourier with_polynomial"})
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
