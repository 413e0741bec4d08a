"""How far a minimiser or a statistic moves, in L2 norm, when one party's whole holding is replaced.

Setting (Hamm et al. 2016): M parties vote on N public rows of norm at most 1; the released weights minimise
the logistic (2 classes) or softmax risk of `federation.numerics.label_losses`, which is lam-strongly convex.
Votes enter that risk linearly, so minimisers of neighbouring votes satisfy |w - w'| <= |mu - mu'| / lam.

Three forms of each bound: `published` as in the paper; `tight`, the paper's binary constants halved, because
turning a label changes the logistic derivative by l'(z) + l'(-z) = -1 exactly, where the paper allows 2; and
`diameter`, the smaller of `tight` and the diameter 2 r of the ball that holds every minimiser. All assume
exact minimisers: add `solver_slack`.
"""

from __future__ import annotations

import math

from federation.errors import InputError, nearest_name

FORMS = ("published", "tight", "diameter")


def soft_vote(form: str, *, regularisation: float, parties: int, classes: int) -> float:
    """Sensitivity of the ERM on vote shares.

    One party moves each row's shares by (e_j - e_k)/M, hence |mu - mu'| <= 1/M (binary, share of class 1) or
    sqrt(2)/M. Binary: published 2/(M lam) (Hamm et al. 2016, Theorem 3), tight 1/(M lam); more classes: both
    sqrt(2)/(M lam) (App. B). Raises `InputError` for lam <= 0, parties < 1, classes < 2 or an unknown form.
    """
    _check(form, regularisation, parties, classes)
    return _bound(form, 1.0 / parties, regularisation, classes)


def majority_vote(form: str, *, regularisation: float, parties: int, classes: int) -> float:
    """Sensitivity of the ERM on majority labels.

    One party may tip every row, hence |mu - mu'| <= 1 (binary) or sqrt(2), whatever the number of parties.
    Binary: published 2/lam (Hamm et al. 2016, Theorem 1), tight 1/lam; more classes: both sqrt(2)/lam
    (App. B). Raises `InputError` for lam <= 0, parties < 1, classes < 2 or an unknown form.
    """
    _check(form, regularisation, parties, classes)
    return _bound(form, 1.0, regularisation, classes)


def statistic(parties: int) -> float:
    """Sensitivity of the whitened vote statistic B' mu L^{+'} in class-contrast coordinates: sqrt(2)/M.

    With X'X/N = L L', s -> L^+ X's/N is sqrt(1/N) times a projection, so columns of share changes with sum_k
    s_ik^2 <= 2/M^2 per row move it by at most sqrt(2)/M; B is orthonormal and adds nothing. Holds for one-hot
    votes and for probability votes (the simplex has diameter sqrt(2)), for every rank and feature norm.
    Raises `InputError` for parties < 1.
    """
    if parties < 1:
        raise InputError(f"parties must be at least 1, got {parties}")
    return math.sqrt(2) / parties


def solver_slack(gradient_tolerance: float, regularisation: float) -> float:
    """What two inexact minimisers add to their exact distance: 2 g / lam.

    |grad R(w)| <= g puts w within g / lam of the minimiser (strong convexity), once per neighbour. g must be
    the public tolerance and never the gradient that was measured. Raises `InputError` for lam <= 0 or g < 0.
    """
    _check_regularisation(regularisation)
    if not 0 <= gradient_tolerance < math.inf:
        raise InputError(f"gradient_tolerance must be finite and not negative, got {gradient_tolerance}")
    return 2 * gradient_tolerance / regularisation


def radius(regularisation: float, classes: int) -> float:
    """Largest norm of a minimiser over all rows of norm at most 1 and all labels or label shares.

    Stationarity gives lam |W|^2 = mean_i (z_iy - sum_k p_ik z_ik) for the scores z_i = W x_i. A summand is at
    most W0((C-1)/e) (Lambert's W, reached when the other classes tie), and at most sqrt(1-1/C) |W| because
    softmax weighs large scores more than the uniform mean does. Binary: z sigma(-z) <= W0(1/e), attained at
    z = 1 + W0(1/e), and <= |w|/2; when |w| cannot reach that z, the root of lam |w| = sigma(-|w|) is exact.
    Raises `InputError` for lam <= 0 or classes < 2.
    """
    from scipy.optimize import brentq
    from scipy.special import expit, lambertw

    _check_regularisation(regularisation)
    _check_classes(classes)
    peak = float(lambertw((classes - 1) / math.e).real)
    lambert = math.sqrt(peak / regularisation)
    if classes > 2:
        return min(lambert, math.sqrt(1 - 1 / classes) / regularisation)
    if lambert >= 1 + peak:
        return lambert
    return float(brentq(lambda w: regularisation * w - expit(-w), 0.0, 0.5 / regularisation, xtol=1e-300))


def _bound(form: str, share: float, regularisation: float, classes: int) -> float:
    """The bound when one party moves a row's label share by `share` from one class to another."""
    if form == "published" and classes == 2:
        return 2 * share / regularisation
    tight = share * (1.0 if classes == 2 else math.sqrt(2)) / regularisation
    return min(tight, 2 * radius(regularisation, classes)) if form == "diameter" else tight


def _check(form: str, regularisation: float, parties: int, classes: int) -> None:
    if form not in FORMS:
        raise InputError(f"sensitivity form must be one of {', '.join(FORMS)}, got '{form}'{nearest_name(form, FORMS)}")
    _check_regularisation(regularisation)
    _check_classes(classes)
    if parties < 1:
        raise InputError(f"parties must be at least 1, got {parties}")


def _check_regularisation(regularisation: float) -> None:
    if not 0 < regularisation < math.inf:
        raise InputError(f"regularisation must be positive and finite, got {regularisation}")


def _check_classes(classes: int) -> None:
    if classes < 2:
        raise InputError(f"classes must be at least 2, got {classes}")
