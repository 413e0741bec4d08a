"""Mechanisms, exact accounting and audits of differential privacy, a folder for each family."""

from typing import Any

from federation.contract.public import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "noise.additive": "AdditiveMechanism calibrate_noise=calibrate",
        "noise.gaussian": "gaussian_delta=delta gaussian_epsilon=epsilon",
        "noise.discrete_gaussian": "discrete_gaussian_delta=delta_bound sample_discrete_gaussian=sample",
        "noise.discrete_laplace": "sample_discrete_laplace=sample",
        "noise.l2_gamma": "sample_l2_gamma=sample",
        "accounting.composition": "compose concentrated_epsilon",
        "accounting.odds": "Odds",
        "accounting.sensitivity": "minimiser_radius=radius solver_slack",
        "audit.estimate": "AuditResult audit_mechanism=audit delta_lower_bound epsilon_lower_bound",
        "counts.calibrated_counts": "calibrate_counts=calibrate",
        "counts.comparison": "compare_counts=compare recommended_counts=recommended",
        "counts.distortion": "Distortion distortion",
        "counts.published_dirichlet": "published_dirichlet_delta=true_delta",
        "labels.calibrated_labels": "calibrate_labels=calibrate",
        "labels.label_range": "LabelRange",
        "labels.shaped_gaussian": "calibrate_label_sums=calibrate",
        "bag_sums.design": "BagDesign",
        "bag_sums.calibrated_sums": "smallest_sigma smallest_tau",
        "bag_sums.noisy_labels": "noisy_bag_sums",
        "bag_sums.laplace": "laplace_bag_sums",
        "bag_sums.repaired": "repaired_bag_sums",
        "bag_sums.per_instance": "PerInstanceDelta per_instance_delta",
        "bag_sums.theorem": "theorem_delta",
        "marginals.noise": "calibrate_marginals=calibrate",
        "moments.calibrated_moments": "calibrate_moments=calibrate",
        "moments.bounds": "noise_quantile",
        "moments.provider": "PrivateMoment release_moment",
    },
)
__all__ = _PUBLIC.all


def __getattr__(name: str) -> Any:
    return _PUBLIC.load(name)


def __dir__() -> list[str]:
    return __all__
