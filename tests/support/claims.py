"""Every claim about what parties send: protocol, options, delta, and how likely the event is that shows most."""

from dataclasses import dataclass, field
from typing import Any

from support.worst_pairs import Pair, pair_of

from aggregator.trial.plan import PublicNumbers

SECURE, SECURE_ROW = {"trust": "secure"}, {"trust": "secure", "protect": "row"}
LABELS = PublicNumbers(0.01, label_range=(-3.0, 7.0))
SUMS = PublicNumbers(0.1, label_range=(-3.0, 7.0))  # rare weights lose most: a small delta needs many runs
BAGS, COMMON, ROWS = PublicNumbers(0.01, classes=3), PublicNumbers(0.01, classes=2), PublicNumbers(0.01)
JOINT = {"noise": "gaussian", "protect": "row", "submit": "embedding", "estimator": "whitened"}


@dataclass(frozen=True)
class Claim:
    """A claim of (epsilon, delta) about what the parties of a protocol send.

    `event` has the probabilities, for the one neighbour and for the other, of the event that shows most: as counted in
    20,000 independent runs (4,000 for labels and bags), each a standard deviation to the worse side.
    """

    kind: str
    delta: float
    event: tuple[float, float]
    options: dict[str, Any] = field(default_factory=dict)
    public: PublicNumbers = ROWS
    epsilon: float = 1.0
    changed: int = 2  # labels of the negative control, where labels are protected

    def pair(self, units: int = 1) -> Pair:
        return pair_of(self.kind, self.options, self.public, units)

    @property
    def least(self) -> float:
        """What the lower bound must exceed."""
        return self.epsilon / 2


CLAIMS = {
    # class_ratio: label counts, whole answers of bags, and sums over parties whose bags are the same
    "counts, auto": Claim("class_ratio", 0.01, (0.528, 0.194), {}, BAGS),
    "counts, gaussian": Claim("class_ratio", 0.01, (0.177, 0.076), {"noise": "gaussian"}, BAGS),
    "counts, laplace": Claim("class_ratio", 0.01, (0.528, 0.194), {"noise": "laplace"}, BAGS),
    "counts, pure": Claim("class_ratio", 0, (0.523, 0.195), {"noise": "pure"}, BAGS),
    "counts, independent_laplace": Claim("class_ratio", 0.01, (0.371, 0.187), {"noise": "independent_laplace"}, BAGS),
    "counts, published_laplace": Claim("class_ratio", 0, (0.367, 0.187), {"noise": "published_laplace"}, BAGS),
    "counts, dirichlet_floor": Claim(
        "class_ratio", 0.01, (0.136, 0.054), {"noise": "dirichlet_floor", "floor": 20}, BAGS
    ),
    "counts, dirichlet_shifted": Claim(
        "class_ratio", 0.01, (0.136, 0.054), {"noise": "dirichlet_shifted", "pseudo_count": 20}, BAGS
    ),
    "bags": Claim("class_ratio", 0.01, (0.192, 0.084), JOINT, BAGS),
    "bags, little for labels": Claim("class_ratio", 0.01, (0.243, 0.107), {**JOINT, "label_share": 0.05}, BAGS),
    "bags, most for labels": Claim("class_ratio", 0.01, (0.184, 0.079), {**JOINT, "label_share": 0.95}, BAGS),
    "common counts, gaussian": Claim("class_ratio", 0.01, (0.114, 0.042), {**SECURE, "noise": "gaussian"}, COMMON),
    "common counts, pure": Claim("class_ratio", 0, (0.369, 0.154), {**SECURE, "noise": "pure"}, COMMON),
    "common bags": Claim("class_ratio", 0.01, (0.175, 0.075), {**SECURE, **JOINT}, COMMON),
    "common bags, most for labels": Claim(
        "class_ratio", 0.01, (0.097, 0.033), {**SECURE, **JOINT, "label_share": 0.95}, COMMON
    ),
    # regression: sums of rows and labels, single labels, bags with published and with secret weights
    "label sums": Claim("label_sums", 0, (0.404, 0.173), {}, LABELS),
    "label sums, gaussian": Claim("label_sums", 0.01, (0.118, 0.045), {"noise": "gaussian"}, LABELS),
    "label sums, isotropic": Claim("label_sums", 0, (0.363, 0.154), {"shape": "isotropic", "noise": "pure"}, LABELS),
    "label sums, whitened": Claim(
        "label_sums", 0.01, (0.153, 0.063), {"shape": "whitened", "noise": "gaussian"}, LABELS
    ),
    "label sums, gaussian shares": Claim("label_sums", 0.01, (0.206, 0.09), {**SECURE, "noise": "gaussian"}, LABELS),
    "label sums, pure shares": Claim("label_sums", 0, (0.537, 0.199), {**SECURE, "noise": "pure"}, LABELS),
    "row sums": Claim("label_sums", 0.01, (0.109, 0.04), {"protect": "row"}, LABELS),
    "row sums, shares": Claim("label_sums", 0.01, (0.208, 0.088), SECURE_ROW, LABELS),
    "labels, unbiased": Claim("private_labels", 0, (0.72, 0.276), {}, LABELS),
    "labels, one bit": Claim("private_labels", 0, (0.723, 0.277), {"noise": "one_bit"}, LABELS),
    "labels, laplace": Claim("private_labels", 0, (0.575, 0.234), {"noise": "laplace"}, LABELS),
    "labels, gaussian": Claim("private_labels", 0.01, (0.147, 0.054), {"noise": "gaussian"}, LABELS, changed=4),
    "labels, bins": Claim("private_labels", 0, (0.717, 0.274), {"noise": "bins"}, LABELS),
    "labels, debiased bins": Claim("private_labels", 0, (0.717, 0.274), {"noise": "bins", "debiased": True}, LABELS),
    "bag sums": Claim("noisy_weighted_llp", 0.1, (0.42, 0.148), {"size": 4}, SUMS, changed=4),
    "bag sums, few noisy": Claim("noisy_weighted_llp", 0.1, (0.324, 0.084), {"size": 8, "rho": 0.25}, SUMS, changed=4),
    "bag sums, laplace": Claim(
        "noisy_weighted_llp", 0, (0.648, 0.261), {"size": 4, "noise": "laplace"}, SUMS, changed=4
    ),
    "bag sums, gaussian weights": Claim(
        "noisy_weighted_llp", 0.1, (0.268, 0.066), {"size": 8, "weights": "gaussian"}, SUMS, changed=4
    ),
    "secret weights": Claim("weighted_lba", 0.1, (0.307, 0.087), {"size": 4}, SUMS, changed=4),
    # mean_operator: noisy sums of y x, whole and in shares, and randomised labels
    "moments, auto": Claim("mean_operator", 0.01, (0.423, 0.16), {}),
    "moments, auto, of few rows": Claim("mean_operator", 0, (0.426, 0.163), {}, PublicNumbers(1e-6)),
    "moments, laplace": Claim("mean_operator", 0, (0.186, 0.077), {"noise": "laplace"}),
    "moments, pure": Claim("mean_operator", 0, (0.197, 0.086), {"noise": "pure"}),
    "moments, gaussian": Claim("mean_operator", 0.01, (0.171, 0.072), {"noise": "gaussian"}),
    "moments, published": Claim("mean_operator", 0, (0.277, 0.065), {"noise": "published_laplace"}, epsilon=3**0.5),
    "moments, short rows": Claim("mean_operator", 0, (0.54, 0.255), {"noise": "laplace", "l1_bound": 1.2}),
    "moments, rows": Claim("mean_operator", 0, (0.197, 0.086), {"protect": "row", "noise": "pure"}),
    "moments, waves": Claim("mean_operator", 0, (0.338, 0.131), {"noise": "laplace", "expansion": "fourier"}),
    "moments, monomials": Claim(
        "mean_operator", 0.01, (0.159, 0.064), {"noise": "gaussian", "expansion": "polynomial"}
    ),
    "moments, laplace shares": Claim("mean_operator", 0, (0.16, 0.063), {**SECURE, "noise": "laplace"}),
    "moments, pure shares": Claim("mean_operator", 0, (0.331, 0.158), {**SECURE, "noise": "pure"}),
    "moments, gaussian shares": Claim("mean_operator", 0.01, (0.153, 0.063), {**SECURE, "noise": "gaussian"}),
    "randomised responses": Claim("mean_operator", 0, (0.718, 0.281), {"noise": "randomised_response"}),
    # error_marginals: all answers of an exchange of two queries
    "marginals, pure": Claim("error_marginals", 0, (0.096, 0.038), {"noise": "pure", "rounds": 2}),
    "marginals, gaussian": Claim("error_marginals", 0.01, (0.128, 0.05), {"noise": "gaussian", "rounds": 2}),
    "marginals, pure, replaced": Claim(
        "error_marginals", 0, (0.053, 0.026), {"noise": "pure", "adjacency": "replace", "rounds": 2}
    ),
    "marginals, gaussian, replaced": Claim(
        "error_marginals", 0.01, (0.107, 0.039), {"noise": "gaussian", "adjacency": "replace", "rounds": 2}
    ),
    "marginals, pure, label": Claim(
        "error_marginals", 0, (0.096, 0.037), {"noise": "pure", "protect": "label", "rounds": 2}
    ),
    "marginals, gaussian, label": Claim(
        "error_marginals", 0.01, (0.195, 0.083), {"noise": "gaussian", "protect": "label", "rounds": 2}
    ),
    "marginals, published": Claim(
        "error_marginals", 0, (0.096, 0.037), {"noise": "published", "protect": "label", "rounds": 2}
    ),
    "marginals, pure shares": Claim("error_marginals", 0, (0.084, 0.033), {**SECURE, "noise": "pure"}),
    "marginals, gaussian shares, replaced": Claim(
        "error_marginals", 0.01, (0.145, 0.058), {**SECURE, "noise": "gaussian", "adjacency": "replace"}
    ),
    "marginals, gaussian shares, label": Claim(
        "error_marginals", 0.01, (0.212, 0.097), {**SECURE, "noise": "gaussian", "protect": "label"}
    ),
}
