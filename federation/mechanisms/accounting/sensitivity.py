"""Sensitivities of minimisers and of vote statistics, in L2 norm, when one party's whole data is replaced.

Setting (Hamm et al. 2016): M parties vote on N auxiliary rows of norm at most 1. The released weights minimise the
logistic (2 classes) or softmax risk of `federation.numerics.label_losses`, which is lam-strongly convex. The distance
of the minimisers of two risks is at most the largest difference of their gradients, divided by lam.

Each bound has four forms:

- `published`: the bound of the paper.
- `tight`: with the binary constants that are exact for the loss. Turning a label changes the logistic derivative by
  l'(z) + l'(-z) = -1, where the paper allows 2.
- `diameter`: the smaller of `tight` and the diameter 2 r of the ball that holds every minimiser (`radius`).
- `public_features`: `tight` times how far votes can move the statistic of these very rows (`reach`).

All forms assume exact minimisers: add `solver_slack` for inexact ones.

With `auxiliary_rows` = N the bounds cover one party and one auxiliary row that change at once (Sec. 4.5). The row
changes with its feature vector and all votes on it. So N-1 rows change their labels by one party's share, and one row
changes at will.
"""

import math

import numpy as np

from federation.contract.errors import InputError
from federation.contract.validation import required
from federation.mechanisms.noise.mechanism import require_from_zero, require_known, require_positive, require_whole
from federation.numerics.rows import Floats

FORMS = ("published", "tight", "diameter", "public_features")

_ABOVE_ROUNDING = 1 + 1e-12


def soft_vote(
    form: str,
    *,
    regularisation: float,
    parties: int,
    classes: int,
    reach: float | None = None,
    auxiliary_rows: int | None = None,
) -> float:
    """Sensitivity of the ERM on vote shares.

    One party moves each row's shares by (e_j - e_k)/M, hence |mu - mu'| <= 1/M (binary, share of class 1) or
    sqrt(2)/M. Binary: published 2/(M lam) (Hamm et al. 2016, Theorem 3), tight 1/(M lam); more classes: both
    sqrt(2)/(M lam) (App. B); `reach` of the rows times tight, or the diameter, is the bound of `public_features`.

    `auxiliary_rows` N (Sec. 4.5): binary published (2/(M lam)) (N-1+M)/N, tight (1/(M lam)) (N-1 + M g)/N with
    g = `row_turn` <= 2; more classes (sqrt(2)/(M lam)) (N-1+2M)/N. Raises `InputError` as `radius`, for parties < 1,
    an unknown form, and `public_features` without `reach` or with `auxiliary_rows`.

    Examples:
        >>> [soft_vote(form, regularisation=0.1, parties=10, classes=2) for form in ("published", "tight")]
        [2.0, 1.0]
        >>> round(soft_vote("diameter", regularisation=0.1, parties=10, classes=2, auxiliary_rows=100), 4)
        1.111
    """
    require_whole("parties", parties, 1)
    return _bound(form, 1.0 / parties, regularisation, classes, reach, auxiliary_rows)


def majority_vote(
    form: str,
    *,
    regularisation: float,
    parties: int,
    classes: int,
    reach: float | None = None,
    auxiliary_rows: int | None = None,
) -> float:
    """Sensitivity of the ERM on majority labels.

    One party may tip every row, hence |mu - mu'| <= 1 (binary) or sqrt(2), whatever the number of parties.
    Binary: published 2/lam (Hamm et al. 2016, Theorem 1), tight 1/lam; more classes: both sqrt(2)/lam
    (App. B); `public_features` as for `soft_vote`. `auxiliary_rows` N: binary unchanged (Sec. 4.5), more classes
    (sqrt(2)/lam) (N+1)/N. Raises `InputError` as `soft_vote`.

    Examples:
        >>> [round(majority_vote(form, regularisation=0.1, parties=10, classes=2), 4) for form in FORMS[:3]]
        [20.0, 10.0, 3.337]
    """
    require_whole("parties", parties, 1)
    return _bound(form, 1.0, regularisation, classes, reach, auxiliary_rows)


def statistic(parties: int, reach: float = 1.0) -> float:
    """Sensitivity of the vote statistic B' A' Y / N in class-contrast coordinates: sqrt(2) reach / M.

    Y are public rows (N, r) in any coordinates, A the label shares, B orthonormal contrasts; `reach` is that of Y.
    Replacing a party changes row i of A by d_i/M with |d_i| <= sqrt(2), for one-hot votes and for probability votes
    (the simplex has diameter sqrt(2)), and |D'Y|_F/N <= sqrt(2) reach. For rows whitened by their own second
    moment Y/sqrt(N) is a projection: the reach is at most 1 for every rank and feature norm. Raises `InputError`
    for parties < 1 or a reach that is not positive and finite.

    Examples:
        >>> statistic(parties=10, reach=0.5)
        0.07071
    """
    require_whole("parties", parties, 1)
    require_positive("reach", reach)
    return math.sqrt(2) * reach / parties


def vote_shares(parties: int, rows: int) -> float:
    """Sensitivity, in Frobenius norm, of the shares of all votes on N rows: sqrt(2 N)/M.

    Each row moves by at most sqrt(2)/M (a one-hot or probability vote is replaced by another); attained when a
    party turns all its votes. Raises `InputError` for parties < 1 or rows < 1.

    Examples:
        >>> vote_shares(parties=10, rows=50)
        1.0
    """
    require_whole("parties", parties, 1)
    require_whole("the number of auxiliary rows", rows, 1)
    return math.sqrt(2 * rows) / parties


def reach(rows: Floats) -> float:
    """The largest |(1/N) sum_i s_i x_i| over |s_i| <= 1, bounded: min(mean_i |x_i|, sigma_max(X)/sqrt(N)).

    `rows` (N, d) must be public: the bound is a function of them. For (N, C) coefficients D with rows of norm at
    most c it bounds |D'X|_F / N by c reach: row by row, or as the operator norm of X times |D|_F <= c sqrt(N).

    Examples:
        >>> reach(np.eye(4))  # sums over rows at right angles stay short: not the mean norm 1
        0.5
    """
    mean = float(np.sqrt(np.einsum("nd,nd->n", rows, rows)).mean())
    spectral = math.sqrt(max(0.0, float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1])))
    # Sums of N products err by N roundoffs of their absolute values, whose matrix has at most d times the norm.
    return min(mean, spectral) * (_ABOVE_ROUNDING + rows.size * float(np.finfo(np.float64).eps))


def solver_slack(gradient_tolerance: float, regularisation: float) -> float:
    """What two inexact minimisers add to their exact distance: 2 g / lam.

    |grad R(w)| <= g puts w within g / lam of the minimiser (strong convexity), once per neighbour. g must be
    the public tolerance and never the gradient that was measured. Raises `InputError` for lam <= 0 or g < 0.

    Examples:
        >>> solver_slack(1e-9, regularisation=0.1)
        2e-08
    """
    require_positive("regularisation", regularisation)
    require_from_zero("gradient_tolerance", gradient_tolerance)
    return 2 * gradient_tolerance / regularisation


def radius(regularisation: float, classes: int) -> float:
    """Largest norm of a minimiser over all rows of norm at most 1 and all labels or label shares.

    Stationarity gives lam |W|^2 = mean_i (z_iy - sum_k p_ik z_ik) for the scores z_i = W x_i. A summand is at
    most W0((C-1)/e) (Lambert's W, reached when the other classes tie), and at most sqrt(1-1/C) |W| because
    softmax weighs large scores more than the uniform mean does. Binary: z sigma(-z) <= W0(1/e), attained at
    z = 1 + W0(1/e), and <= |w|/2; when |w| cannot reach that z, the root of lam |w| = sigma(-|w|) is exact.
    Raises `InputError` for lam outside [1e-100, 1e15], where roots are lost in rounding, or classes < 2.

    Examples:
        >>> [round(radius(lam, classes=2), 4) for lam in (0.001, 0.1, 10.0)]
        [16.69, 1.669, 0.0488]
    """
    from scipy.optimize import brentq
    from scipy.special import expit, lambertw

    required("regularisation", regularisation, "be a number from 1e-100 to 1e15", lambda value: 1e-100 <= value <= 1e15)
    require_whole("classes", classes, 2)
    peak = float(lambertw((classes - 1) / math.e).real)
    lambert = math.sqrt(peak / regularisation)
    if classes > 2:
        return min(lambert, math.sqrt(1 - 1 / classes) / regularisation)
    if lambert >= 1 + peak:
        return lambert
    return float(brentq(lambda w: regularisation * w - expit(-w), 0.0, 0.5 / regularisation, xtol=1e-300))


def row_turn(norm: float) -> float:
    """Largest change of one row's logistic gradient when the row and its label change at will, where |w| <= norm.

    The gradient (sigma(w'x) - alpha) x is linear in alpha and, at alpha = 1, that of -x at alpha = 0, so the answer
    is the diameter of {sigma(w'x) x: |x| <= 1}: max over 0 <= c <= 1 of 2 sqrt(1-c^2) sigma(norm c), which two rows
    at equal angles to w attain; 1 for norm 0, towards 2 as it grows. Proof for rows x and y with scores b + a and
    b - a, s = sigma(b+a), t = sigma(b-a): if b <= 0 the distance is at most s + t <= 1. Otherwise |x + y| >= 2 b/norm
    gives a squared distance of at most s^2 + t^2 + s t (2 - 4 c^2), c = b/norm, which is a convex quadratic in
    1/(cosh a + cosh b); its ends are 1 (a infinite) and 4 (1-c^2) sigma(b)^2 (a = 0).

    Examples:
        >>> [round(row_turn(norm), 4) for norm in (0.0, 1.0, 100.0)]
        [1.0, 1.099, 1.993]
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    def slope(c: float) -> float:  # of ln sqrt(1-c^2) + ln sigma(norm c), times 1-c^2: decreasing
        return float(norm * expit(-norm * c)) * (1 - c * c) - c

    c = float(brentq(slope, 0.0, 1.0, xtol=1e-15))
    return min(2.0, 2 * math.sqrt(1 - c * c) * float(expit(norm * c)) * _ABOVE_ROUNDING)


def _bound(
    form: str, share: float, regularisation: float, classes: int, reach: float | None, auxiliary_rows: int | None
) -> float:
    """The bound when one party moves a row's label share by `share` from one class to another."""
    require_known("sensitivity form", form, FORMS)
    if reach is not None:
        require_positive("reach", reach)
    if auxiliary_rows is not None:
        require_whole("the number of auxiliary rows", auxiliary_rows, 1)
    if form == "public_features" and (reach is None or auxiliary_rows is not None):
        raise InputError(
            "sensitivity form 'public_features' is a function of the auxiliary rows: it needs their reach, and they "
            "must not be protected; give reach, or use 'tight' or 'diameter'"
        )
    largest = radius(regularisation, classes)
    published = form == "published"
    if classes > 2:
        label, row, farthest = math.sqrt(2), 2 * math.sqrt(2), 2 * math.sqrt(1 - 1 / classes)
    elif published:
        label, row, farthest = 2.0, 2.0, 2.0
    else:
        label, row, farthest = 1.0, row_turn(largest), 1.0
    gradient = share * label
    if auxiliary_rows is not None:
        gradient = ((auxiliary_rows - 1) * gradient + row) / auxiliary_rows
    if not published:
        gradient = min(gradient, farthest)  # |w| <= farthest / (2 lam), whatever changes: see `radius`
    if reach is not None and form == "public_features":
        gradient *= min(reach, 1.0)
    if form in ("published", "tight"):
        return gradient / regularisation
    return min(gradient / regularisation, 2 * largest)
