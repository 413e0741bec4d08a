"""How far a mean of one vector per party moves, in L2 norm, when one party's whole holding is replaced.

Setting (Pathak, Rane and Raj 2010; the `avg` of Hamm et al. 2016): each of M parties sends the minimiser of its own
logistic (2 classes) or softmax risk, lam-strongly convex, and their mean is released. All of a party's rows may
change, so its minimiser may move anywhere in the set that holds every minimiser: the sensitivity is that set's
diameter over M. Forms of the bound, each at most the one before:

- `published`: gradients of the loss differ by at most 2 (binary) or 2 sqrt(2), over lam (Hamm et al. 2016, App. B).
- `tight`: a gradient is at most 1/2 (binary) or sqrt(1-1/C) long at any minimiser, which is hence that over lam.
- `diameter`: twice `federation.mechanisms.accounting.sensitivity.radius`. Attained, for more than two classes by
  turning every row, x -> -x, and for two by turning every label.
"""

from __future__ import annotations

import math

from federation.mechanisms.accounting.sensitivity import radius
from federation.mechanisms.noise.mechanism import require_known, require_positive, require_whole

FORMS = ("published", "tight", "diameter")


def parameter_average(form: str, *, regularisation: float, parties: int, classes: int) -> float:
    """Sensitivity of the mean of exact minimisers on rows of norm at most 1.

    Raises `InputError` for lam <= 0, parties < 1, classes < 2 or an unknown form.

    Examples:
        >>> [parameter_average(form, regularisation=0.1, parties=10, classes=2) for form in FORMS]
        [2.0, 1.0, 0.3337]
    """
    require_known("sensitivity form", form, FORMS)
    diameter = 2 * radius(regularisation, classes)
    if form == "published":
        diameter = (2 if classes == 2 else 2 * math.sqrt(2)) / regularisation
    elif form == "tight":
        diameter = (1 if classes == 2 else 2 * math.sqrt(1 - 1 / classes)) / regularisation
    return clipped_mean(diameter / 2, parties)


def clipped_mean(norm: float, parties: int) -> float:
    """Sensitivity of the mean of M vectors of norm at most B, whoever sends them: 2 B/M, attained by v -> -v.

    Raises `InputError` for parties < 1 or a norm that is not positive and finite.

    Examples:
        >>> clipped_mean(norm=3.0, parties=10)
        0.6
    """
    require_whole("parties", parties, 1)
    require_positive("norm", norm)
    return 2 * norm / parties


def radius_of_any_rows(regularisation: float, classes: int) -> float:
    """Largest norm of a minimiser whatever the norms of the rows: sqrt(W0((C-1)/e) / lam), W0 Lambert's function.

    Stationarity gives lam |W|^2 = mean_i (z_iy - sum_k p_ik z_ik) for the scores z_i = W x_i, and no summand exceeds
    W0((C-1)/e), whatever the scores. Raises `InputError` for lam <= 0 or classes < 2.

    Examples:
        >>> radius_of_any_rows(regularisation=10.0, classes=2), radius(10.0, classes=2)
        (0.1669, 0.04878)
    """
    from scipy.special import lambertw

    require_positive("regularisation", regularisation)
    require_whole("classes", classes, 2)
    return math.sqrt(float(lambertw((classes - 1) / math.e).real) / regularisation)
