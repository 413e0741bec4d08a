"""Mechanisms, exact accounting and audits of differential privacy, a folder for each family."""

from federation.contract.plugins import PublicNames

_PUBLIC = PublicNames(
    __name__,
    {
        "noise.additive": "AdditiveMechanism calibrate_noise=calibrate",
        "noise.gaussian": "gaussian_delta=delta gaussian_epsilon=epsilon",
        "noise.discrete": "discrete_gaussian_delta=delta_bound sample_discrete_gaussian sample_discrete_laplace",
        "noise.l2_gamma": "sample_l2_gamma=sample",
        "accounting.composition": "compose concentrated_epsilon Odds",
        "accounting.sensitivity": "minimiser_radius=radius solver_slack",
        "audits": "AuditResult audit_mechanism=audit delta_lower_bound epsilon_lower_bound",
        "counts.calibration": "calibrate_counts=calibrate published_dirichlet_delta=true_delta",
        "counts.comparison": "compare_counts=compare recommended_counts=recommended Distortion distortion",
        "labels.calibration": "calibrate_labels=calibrate",
        "labels.mechanism": "LabelRange",
        "labels.shaped_gaussian": "calibrate_label_sums=calibrate",
        "bag_sums.design": "BagDesign",
        "bag_sums.calibration": "smallest_sigma smallest_tau",
        "bag_sums.noisy_labels": "noisy_bag_sums laplace_bag_sums theorem_delta",
        "bag_sums.weighted_sums": "repaired_bag_sums PerInstanceDelta per_instance_delta",
        "marginals.noise": "calibrate_marginals=calibrate",
        "sums.row_sums": "calibrate_moments=calibrate_row_sums noise_quantile",
        "sums.label_provider": "PrivateMoment release_moment",
    },
)
__all__ = _PUBLIC.all
__getattr__, __dir__ = _PUBLIC.load, __all__.copy
