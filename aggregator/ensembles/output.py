"""Output perturbation: noise on the minimiser of the weighted risk (Hamm et al. 2016, Alg. 1 and 2)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from aggregator.contract.option_rules import refuse_public_reach
from aggregator.contract.perturbable import Decode, LinearScores, Perturbable
from aggregator.ensembles.decoding import PUBLIC_ROWS, VOTE_ASSUMPTIONS, VOTE_CHECKS, two_rows
from aggregator.ensembles.ensemble import Ensemble, Labels
from federation.contract.guarantee import Assumption, Check, Keeper, Unit
from federation.mechanisms.accounting import sensitivity
from federation.mechanisms.noise.additive import AdditiveMechanism
from federation.numerics.rows import contrast_rounding, contrasts

Protect = Literal["party", "party_and_auxiliary_row"]
PUBLISHED_REGULARISATION = 1e-4  # of Hamm et al.'s experiments

_MINIMISER_ASSUMPTIONS = (
    Assumption("auxiliary rows have norm at most 1", Check.CHECKED),
    Assumption("the minimiser meets a public gradient tolerance, whose reach is charged", Check.CHECKED),
)
_AUXILIARY_ASSUMPTIONS = (
    Assumption("one party with everything it holds and one auxiliary row with all votes on it may change at once; "
               "the number of auxiliary rows is public", Check.ENFORCED),
    Assumption("no stage of the feature map is fitted on the auxiliary rows", Check.CHECKED),
    Assumption("a vote depends on its own auxiliary row and on its party's rows, on no other auxiliary row; parties "
               "see the auxiliary rows, which are protected from whoever sees the release", Check.DECLARED,
               Keeper.SITE),
    Assumption("the feature map and all options were chosen without private data or auxiliary rows", Check.DECLARED,
               Keeper.COORDINATOR),
)  # fmt: skip


_PUBLIC_REACH = (
    Assumption(
        "the sensitivity is computed from the auxiliary rows as they are, which are public",
        Check.DECLARED,
        Keeper.COORDINATOR,
    ),
)
_CHECKS = (*VOTE_CHECKS, "norms of the auxiliary rows are at most 1", "the minimiser is certified")
_AUXILIARY_CHECK = "no stage of the feature map was fitted on the auxiliary rows"


def perturb_output(
    ensemble: Ensemble, labels: Labels, form: str, regularisation: float, protect: Protect = "party"
) -> Perturbable:
    """Noise on the minimiser, with the solver's public tolerance charged (2 g / lam).

    `form` is one of `federation.mechanisms.accounting.sensitivity.FORMS`. For 3 classes or more, minimisers sum to zero
    over the classes, so all forms but the published one release B'W, shape (C-1, d) flattened, B class contrasts: the
    projection moves no two minimisers apart, removes what the solver left outside the subspace, and the released
    weights are B times the noisy coordinates. `protect` may add one auxiliary row to the unit (Sec. 4.5).

    Raises `InputError` for public rows longer than 1, and for a protected auxiliary row when the feature map is
    fitted on the rows or the form depends on them.
    """
    public, classes = ensemble.public, ensemble.classes
    guarded = protect == "party_and_auxiliary_row"
    if guarded:
        public.require_unfitted()
        refuse_public_reach(form, protect)
    stretch = public.require_unit_norms()
    weights = ensemble.minimiser(labels, regularisation)
    bound = sensitivity.soft_vote if labels == "soft" else sensitivity.majority_vote
    reach = bound(
        form,
        regularisation=regularisation,
        parties=ensemble.parties,
        classes=classes,
        reach=public.reach if form == "public_features" else None,
        auxiliary_rows=len(public.rows) if guarded else None,
    )
    slack = sensitivity.solver_slack(ensemble.gradient_tolerance(regularisation), regularisation)
    largest = stretch * sensitivity.radius(regularisation, classes) + slack / 2
    basis = contrasts(classes) if classes > 2 and form != "published" else None
    mixing = np.array([[-0.5], [0.5]]) if classes == 2 else np.eye(classes) if basis is None else basis
    value = weights if basis is None else basis.T @ weights
    rounding = 0.0 if basis is None else 2 * contrast_rounding(classes) * largest
    return Perturbable(
        value.ravel(),
        stretch * reach + slack + rounding,
        weights_decoder(value.shape, basis),
        (
            *VOTE_ASSUMPTIONS,
            *(_AUXILIARY_ASSUMPTIONS if guarded else (PUBLIC_ROWS,)),
            *(_PUBLIC_REACH if form == "public_features" else ()),
            *_MINIMISER_ASSUMPTIONS,
        ),
        (*_CHECKS, _AUXILIARY_CHECK) if guarded else _CHECKS,
        Unit.PARTY_AND_AUXILIARY_ROW if guarded else Unit.PARTY,
        largest,
        # The minimiser is expected to have the same variance in all directions.
        None if guarded else LinearScores.of_features(public.rows, mixing, np.ones(public.rows.shape[1])),
    )


def weights_decoder(shape: tuple[int, ...], basis: np.ndarray | None) -> Decode:
    """Noisy values as weights: of two classes from one vector (d,), of more from (C, d) or contrasts (C-1, d).

    Examples:
        >>> weights_decoder((2,), None)(np.array([[2.0, -4.0]]), None)  # one draw of two classes
        array([[[-1.,  2.],
                [ 1., -2.]]])
    """

    def decode(noisy: np.ndarray, _: AdditiveMechanism | None) -> np.ndarray:
        shaped = noisy.reshape(len(noisy), *shape)
        if len(shape) == 1:
            return two_rows(shaped)
        return shaped if basis is None else basis @ shaped

    return decode
