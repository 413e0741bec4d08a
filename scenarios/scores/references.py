"""The features of `pooled`: what central data would give is not to depend on what private releases can afford."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scenarios.settings.classifier import LOGISTIC

Stages = Sequence[str | Mapping[str, Any]]

_CURVED = ("fourier", "polynomial")  # made for as many columns as they get
_FOR_RELEASES = ("whiten", "unit_norm", "max_norm")  # dimensions that noise affords, and norms that bound what it hides
_SCALING = ("scale", "standardise")


def reference_stages(stages: Stages, classifier: Mapping[str, Any] | None) -> list[str | Mapping[str, Any]]:
    """The stages of a scenario (`aggregator.trial.feature_fitting.fit`) as a reference on central data takes them.

    All columns stay: whitened directions and bounded norms are left out, unless random features or monomials are made
    of them; principal components are somebody's choice of features. Mixed units are scaled where the scenario says
    nothing of scales. Linear models get a constant column, as other classifiers have intercepts of their own. For
    logistic regression columns are standardised and rows of norm 1, which its regularisation is for; least squares
    (`classifier` None) depends on neither.

    Examples:
        >>> logistic = {"name": "logistic", "parameters": {}}
        >>> reference_stages(["impute", "scale", {"whiten": "auto"}, "constant", "unit_norm"], logistic)
        ['impute', 'scale', 'standardise', 'constant', 'unit_norm']
        >>> reference_stages([{"whiten": 60}], {"name": "GaussianNB", "parameters": {}})
        ['scale']
        >>> reference_stages(["standardise", {"pca": 5}, {"fourier": 64}], None)
        ['standardise', {'pca': 5}, {'fourier': 64}, 'constant']
    """
    names = [stage if isinstance(stage, str) else next(iter(stage)) for stage in stages]
    curved = max((i + 1 for i, name in enumerate(names) if name in _CURVED), default=0)
    kept = [stage for i, stage in enumerate(stages) if i < curved or names[i] not in (*_FOR_RELEASES, "constant")]
    if not curved and not any(name in _SCALING for name in names):
        kept.insert(names.count("impute") + names.count("signed_log"), "scale")
    if classifier is None:
        return [*kept, "constant"]
    if classifier["name"] != LOGISTIC:
        return kept
    even = () if curved or "standardise" in names else ("standardise",)
    return [*kept, *even, "constant", "unit_norm"]
