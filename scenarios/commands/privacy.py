"""`federation privacy MECHANISM`: the noise that a guarantee needs, before any data is touched.

Each command is about one mechanism. The signature of a command contains its input, and its body prints the result.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Option

from federation.contract.errors import InputError
from federation.contract.trust import COLLUDING, TrustTerms
from scenarios.commands.options import RANGE, AsJson, parsed_range
from scenarios.commands.output import tell

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

privacy_app = typer.Typer(no_args_is_help=True, help="Noise scales and guarantees of a mechanism, without data.")

Sensitivity = Annotated[float, Option(help="L2 distance by which one unit can move the value.")]
Dimension = Annotated[int, Option(min=1, help="Coordinates of the value.")]
Epsilon = Annotated[float, Option(help="Privacy loss bound.")]
Delta = Annotated[float, Option(help="Probability beyond the bound (Gaussian noise only).")]
DeltaOrPure = Annotated[float, Option(help="Probability beyond the bound; 0 asks for pure noise.")]

_LARGEST_COUNT = 2**52
_MOST = 10**6  # records of a class that Dirichlet noise can build on
_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)  # of epsilon, at which delta is told
_RELEASES = {1, 2, 4, 8, 16}  # of the same labels, whose delta is told


@privacy_app.command()
def proportions(
    counts: Annotated[str | None, Option(metavar="N,N,...", help="Invented counts per class to compare at.")] = None,
    classes: Annotated[int | None, Option(min=2, help="Number of classes, to choose by public numbers.")] = None,
    size: Annotated[int | None, Option(min=1, max=_LARGEST_COUNT, help="Records in a bag, beside --classes.")] = None,
    epsilon: Epsilon = 1.0,
    delta: DeltaOrPure = 1e-6,
    floor: Annotated[
        int | None, Option(min=1, max=_MOST, help="Of every class, surely (dirichlet_floor); default: the least count.")
    ] = None,
    pseudo_count: Annotated[
        int | None, Option(min=1, max=_MOST, help="Added to every class (dirichlet_shifted); default: half the bag.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Mechanisms for the label counts of one bag: parameters, claims and expected distortion."""
    from federation.mechanisms.counts.comparison import compare, published_dirichlet, recommended

    values = _counts(counts, classes, size)
    chosen, mechanism = recommended(len(values), epsilon, delta)
    found = compare(values, epsilon, delta, floor=floor, pseudo_count=pseudo_count)
    if counts is not None:
        found.append(published_dirichlet(values, epsilon, delta))
    elif floor is None:
        found = [one for one in found if one.noise != "dirichlet_floor"]  # a promise that nobody has made
    rows = [asdict(one) for one in found]
    for row in rows:
        expected = row.pop("distortion") or {}
        row |= {"l1": expected.get("mean"), "l1_standard_error": expected.get("standard_error")}
    total, deviation = int(values.sum()), mechanism.variance() ** 0.5
    record: dict[str, Any] = {"classes": len(values), "size": total, "epsilon": epsilon, "delta": delta, "rows": rows}
    record |= {"counts": counts and values.tolist(), "recommended": chosen, "count_deviation": deviation}
    text = [
        "l1 is the mean L1 error of released proportions" + ("." if counts else ", at equal counts."),
        f"Use noise: {chosen} (what auto chooses by {len(values)} classes, epsilon and delta alone).",
        f"A released count is then off by {deviation:.3g} records (standard deviation).",
    ]
    if deviation > total:
        text.append("That is more than the bag holds: a release says nothing. Take a larger epsilon or larger bags.")
    tell(as_json, record, text=text)


def _counts(counts: str | None, classes: int | None, size: int | None) -> NDArray[np.int64]:
    """The counts (C,) of either form. Raises `InputError` for none, both or impossible ones."""
    import numpy as np

    from federation.mechanisms.counts.additive import equal_counts

    if counts is None:
        if classes is None or size is None:
            raise InputError("give --counts N,N,... to compare at invented counts, or --classes and --size to choose")
        return equal_counts(classes, size)
    if classes is not None or size is not None:
        raise InputError("--counts stands alone: leave out --classes and --size, which follow from it")
    try:
        values = [int(part) for part in counts.split(",")]
    except ValueError:
        values = []
    if len(values) < 2 or not 0 <= min(values) <= max(values) <= _LARGEST_COUNT:
        allowed = "two or more whole numbers from 0 to 2^52 with commas between, such as 50,50,900"
        raise InputError(f"--counts must be {allowed}; got '{counts}'")
    return np.array(values)


@privacy_app.command()
def llp(
    n: Annotated[int, Option("--n", min=1, help="Records.")],
    m: Annotated[int, Option("--m", min=1, help="Disjoint bags.")],
    k: Annotated[int, Option("--k", min=1, help="Records in a bag.")],
    rho: Annotated[float | None, Option(help="Share of records whose labels get noise, in (0, 1].")] = None,
    per_bag: Annotated[int | None, Option(help="Instead of --rho: noisy labels in every bag.")] = None,
    sigma: Annotated[float, Option(help="Standard deviation of the noise on a label.")] = 1.0,
    label_range: Annotated[str, RANGE] = "0,1",
    weights: Annotated[Literal["gaussian", "signs"], Option(help="gaussian is as published.")] = "gaussian",
    epsilon: Epsilon = 1.0,
    delta: Annotated[float, Option(help="What the noise that is enough should reach.")] = 1e-6,
    releases: Annotated[int, Option(min=1, help="Of the same labels, each with fresh bags and noise.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Exact delta of noisy-wtd-LLP, the published theorem's value, and what several releases cost."""
    from federation.mechanisms.bag_sums.calibration import composed_delta, smallest_sigma
    from federation.mechanisms.bag_sums.calibration import delta as exact_delta
    from federation.mechanisms.bag_sums.design import BagDesign
    from federation.mechanisms.bag_sums.noisy_labels import theorem_delta
    from federation.numerics.bag_weights import noisy_count

    if (rho is None) == (per_bag is None):
        raise InputError("give --rho, the share of noisy labels, or --per-bag, how many every bag has, and not both")
    bounds = parsed_range(label_range)
    noisy = None if rho is None else noisy_count(rho, n)
    design = BagDesign(n, m, k, noisy, per_bag, weights)
    scale: dict[str, Any] = {"sigma": sigma, "label_range": bounds}
    covered = noisy is not None and weights == "gaussian"
    reachable = not 0 < delta <= design.noise_free
    record = {
        **{"n": n, "m": m, "k": k, "noisy": noisy, "per_bag": per_bag, "weights": weights, **scale},
        "epsilon": epsilon,
        "delta": exact_delta(epsilon, design, **scale),
        "theorem": theorem_delta(epsilon, design, **scale) if covered else None,
        "infinite_loss": design.noise_free,
        "wanted_delta": delta,
        "sigma_for_delta": smallest_sigma(epsilon, delta, design, label_range=bounds) if reachable else None,
        "releases": [
            {"releases": count, "delta": composed_delta(epsilon, design, releases=count, **scale)}
            for count in sorted(_RELEASES | {releases})
        ],
    }
    text = [
        f"delta is exact; theorem is the published bound{'' if covered else ', which covers other designs only'}.",
        "One label may change, within the range; features, bags, weights and which labels are noisy are public.",
        "Infinite loss, a floor for delta: a bag without noise reveals a label, whatever epsilon and sigma are; "
        "--per-bag avoids it.",
    ]
    if not reachable:
        text.append(f"No noise is enough for delta {delta:g}.")
    tell(as_json, record, text=text)


@privacy_app.command()
def lba(
    file: Annotated[Path, typer.Argument(metavar="DATA", help="A csv, npz or Parquet file with real labels.")],
    label: Annotated[str | None, Option(metavar="COLUMN", help="The column of labels.")] = None,
    label_range: Annotated[str | None, RANGE] = None,
    k: Annotated[int, Option("--k", min=1, help="Records in a bag.")] = 64,
    m: Annotated[int | None, Option("--m", min=1, help="Disjoint bags; default: as many as the rows allow.")] = None,
    epsilon: Epsilon = 1.0,
    delta: Annotated[float, Option(help="What noise on the sums should reach on all data.")] = 1e-6,
    outside: Annotated[Literal["refuse", "clip"], Option(help="What to do with labels outside it.")] = "refuse",
    seen: Annotated[int, Option(min=1, help="Random bags to look at, at most all m.")] = 20,
    seed: Annotated[int, Option(min=0, help="Of the bags that are looked at.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Per-instance delta of wtd-LBA on a file (DATA DEPENDENT, no guarantee), and the noise that would give one."""
    import numpy as np

    from aggregator.trial.feature_fitting import fit
    from federation.contract.randomness import NoiseBits
    from federation.mechanisms.bag_sums import weighted_sums as repaired
    from federation.mechanisms.bag_sums.weighted_sums import per_instance_delta
    from federation.numerics.bag_weights import disjoint_bags
    from scenarios.data.files import read_table

    if label_range is None:
        raise InputError("--range LOW,HIGH must declare the public range of labels; it cannot be taken from the data")
    bounds = parsed_range(label_range)
    table = read_table(file, label, real=True).with_range(bounds, outside)
    n = len(table)
    rows = table.rows(np.arange(n))
    unknown = np.flatnonzero(~np.isfinite(rows).all(axis=0))
    if unknown.size:
        column = table.columns[unknown[0]]
        raise InputError(f"{file}: column '{column}' has missing values; fill them or remove the rows")
    rows = fit(["constant"], rows, table.text).transform(rows)
    bags = disjoint_bags(n, m or max(1, n // k), k, NoiseBits(seed, "bags to look at"))
    share = bags.size / n
    found = per_instance_delta(epsilon, rows, table.labels, bags[:seen], label_range=bounds, inclusion=share).to_dict()
    tau = repaired.calibrate(n, len(bags), k, label_range=bounds, epsilon=epsilon, delta=delta).tau
    found |= {"n": n, "m": len(bags), "tau_for_a_guarantee": tau, "guaranteed_delta": delta}
    text = [
        f"NOT A GUARANTEE: {found['warning']}.",
        "Deltas are of the records in bags: their mean, the largest of a bag on average, and the largest of all. "
        "Inclusion is the probability that a record is in a bag; the revealed share is that of records with delta 1.",
        f"Noise of standard deviation {tau:.4g} on every sum of labels gives one for all data: "
        f"(epsilon, delta) = ({epsilon:g}, {delta:g}) for one label.",
    ]
    tell(as_json, found, text=text, hidden=("guarantee", "warning"))


@privacy_app.command()
def mean_operator(
    rows: Annotated[int, Option("--rows", min=1, help="Rows of all parties, cut to norm 1.")],
    dimension: Annotated[int, Option("--d", min=1, help="Features of a row, the constant one included.")],
    epsilon: Annotated[float, Option(help="Privacy loss bound, for one label or one row.")] = 1.0,
    delta: DeltaOrPure = 1e-6,
    parties: Annotated[int, Option(min=1, help="Parties among whom the rows are, as many at each.")] = 1,
    secure_sum: Annotated[bool, Option("--secure-sum", help="Shares of one noise; only sums are revealed.")] = False,
    quorum: Annotated[float, Option(min=0, max=1, help="Least share of parties that answers a secure sum.")] = 0.5,
    colluding: Annotated[
        float, Option(min=0, max=1, help="Largest share that tells who sees a secure sum what it sent.")
    ] = COLLUDING,
    l1_bound: Annotated[float | None, Option(help="Public bound on the L1 norm of rows; default: sqrt(d).")] = None,
    weight: Annotated[
        float, Option(help="How much errors of randomised response count; a run computes it from public rows.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Mechanisms for the mean operator, the mean of y x: honest epsilon, noise, and what to regularise by."""
    from scenarios.commands.privacy_tables import moment_noises

    if parties > rows:
        raise InputError(f"--parties must be an integer from 1 to --rows, got {parties} for {rows} rows")
    public: dict[str, Any] = {"rows": rows, "dimension": dimension, "epsilon": epsilon, "delta": delta}
    shares = TrustTerms(parties, quorum, colluding).honest if secure_sum else 0
    record, text = moment_noises(**public, parties=parties, shares=shares, l1_bound=l1_bound, weight=weight)
    tell(as_json, record, text=text, hidden=("mechanism",))


@privacy_app.command()
def secure_sum(
    parties: Annotated[int, Option(min=3, max=10**6, help="Parties on the roster.")],
    corrupt: Annotated[float, Option(min=0, max=1, help="Largest share that colludes with the server.")] = COLLUDING,
    dropout: Annotated[float, Option(min=0, max=1, help="Largest share that stays away or falls silent.")] = 0.1,
    numbers: Annotated[int, Option(min=1, max=10**6, help="Integers that each party sends.")] = 50,
    quorum: Annotated[
        float | None, Option(min=0, max=1, help="Least share that is counted; default: all but those who stay away.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """A sum whose parts nobody sees, by one server or two: neighbours, thresholds, failures, bytes and seconds."""
    from scenarios.commands.privacy_tables import masked_sums

    record, text = masked_sums(parties=parties, corrupt=corrupt, dropout=dropout, numbers=numbers, quorum=quorum)
    tell(as_json, record, text=text)


@privacy_app.command()
def error_marginals(
    features: Annotated[int, Option(min=1, help="Features, each with bins of its own.")],
    queries: Annotated[int, Option(min=1, help="Queries of the exchange, that for row counts included.")],
    epsilon: Annotated[float, Option(help="Privacy loss bound of all queries together.")] = 1.0,
    delta: DeltaOrPure = 1e-5,
    protect: Annotated[Literal["row", "label"], Option(help="label where features are public.")] = "row",
    adjacency: Annotated[
        Literal["add_remove", "replace"] | None, Option(help="Default: add_remove of a row, replace of a label.")
    ] = None,
    rows: Annotated[
        int | None, Option(min=1, help="Target rows, a public number: shows the bins of a feature.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Noise on the error marginals of EXPRIL: pure, Gaussian and as published, and which of them auto takes."""
    from aggregator.learners.error_marginals.learner import bins_per_feature, published_bins
    from federation.contract.guarantee import Adjacency, Unit
    from federation.mechanisms.marginals.noise import MarginalKind, MarginalNoise, calibrate
    from federation.mechanisms.marginals.published import PublishedRates

    unit, change = Unit(protect), Adjacency(adjacency or ("add_remove" if protect == "row" else "replace"))
    numbers: dict[str, Any] = {"features": features, "queries": queries, "epsilon": epsilon, "delta": delta}
    kinds: list[MarginalKind] = ["auto", "pure", "gaussian"] if delta else ["auto", "pure"]
    noises: dict[str, MarginalNoise | PublishedRates] = {
        kind: calibrate(kind, **numbers, unit=unit, adjacency=change) for kind in kinds
    }
    taken = "gaussian" if noises.pop("auto").delta else "pure"
    noises["published"] = published = PublishedRates(features, queries, epsilon)
    note = "rates of errors, divided by exact public numbers of rows: the same noise as pure, less what clipping loses"
    refused = False
    try:
        published.guarantee(unit=unit, adjacency=change)
    except InputError as error:
        note, refused = str(error), True
    mechanisms = []
    for name, noise in noises.items():
        row = {"noise": name, "scale": float(noise.scale), "deviation": noise.deviation}
        kept = {"epsilon": noise.epsilon, "delta": noise.delta, "epsilon_per_query": noise.per_query().epsilon}
        row |= dict.fromkeys(kept) if refused and name == "published" else kept
        rule = published_bins if name == "published" else bins_per_feature
        row["bins"] = None if rows is None else rule(rows, features, noise.deviation)
        mechanisms.append(row | {"note": note if name == "published" else ""})
    record = numbers | {"unit": unit, "adjacency": change, "target_rows": rows, "auto": taken, "mechanisms": mechanisms}
    text = [
        f"Use noise: {taken} (what auto takes, by the standard deviation of a cell).",
        "Epsilon is that of all queries together, whose number is fixed beforehand. A cell counts the errors, or the "
        "correct rows, of a hypothesis in one of the bins of a feature.",
    ]
    tell(as_json, record, text=text)


@privacy_app.command()
def gaussian(
    sensitivity: Sensitivity = 1.0,
    dimension: Dimension = 1,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    as_json: AsJson = False,
) -> None:
    """Discrete Gaussian noise with the exact analytic calibration."""
    _additive("gaussian", sensitivity, dimension, epsilon, delta, as_json)


@privacy_app.command()
def l2_gamma(
    sensitivity: Sensitivity = 1.0, dimension: Dimension = 2, epsilon: Epsilon = 1.0, as_json: AsJson = False
) -> None:
    """Pure noise with density falling in the L2 norm (in one dimension: the discrete Laplace)."""
    _additive("pure", sensitivity, dimension, epsilon, 0.0, as_json)


@privacy_app.command()
def discrete_laplace(sensitivity: Sensitivity = 1.0, epsilon: Epsilon = 1.0, as_json: AsJson = False) -> None:
    """Pure noise for one number."""
    _additive("pure", sensitivity, 1, epsilon, 0.0, as_json)


def _additive(
    noise: Literal["pure", "gaussian"], sensitivity: float, dimension: int, epsilon: float, delta: float, as_json: bool
) -> None:
    from federation.mechanisms.noise.additive import calibrate

    found = calibrate(noise, sensitivity=sensitivity, dimension=dimension, epsilon=epsilon, delta=delta)
    record = {
        "mechanism": found.name,
        "epsilon": found.epsilon,
        "delta": found.delta,
        **found.parameters,
        "expected_noise_norm": found.expected_noise_norm(),
        "delta_at": [{"epsilon": by * epsilon, "delta": found.delta_at(by * epsilon)} for by in _FACTORS],
        "assumptions": [{"text": one.text, "check": str(one.check)} for one in found.assumptions],
    }
    tell(as_json, record)


@privacy_app.command(
    "majority-vote",
    help="Sensitivities and noise of the majority vote's parameters, beside the soft vote's statistic.",
)
@privacy_app.command(
    "soft-vote", help="Sensitivities and noise of the soft vote, on its parameters and on its sufficient statistic."
)
def vote(
    context: typer.Context,
    parties: Annotated[int, Option(min=1, help="Number of parties.")] = 1000,
    classes: Annotated[int, Option(min=2, help="Number of classes.")] = 2,
    regularisation: Annotated[float, Option(help="lambda of the regularised risk.")] = 1e-4,
    epsilon: Epsilon = 1.0,
    delta: Delta = 1e-6,
    dimension: Annotated[int, Option(min=1, help="Feature dimension of the linear model.")] = 10,
    quorum: Annotated[
        float | None, Option(min=0, max=1, help="Least share of parties that answers: shows a secure sum, too.")
    ] = None,
    colluding: Annotated[
        float, Option(min=0, max=1, help="Largest share that tells who sees a secure sum what it sent.")
    ] = COLLUDING,
    as_json: AsJson = False,
) -> None:
    """One row per sensitivity with both noises: on the model's parameters, and on the statistic of class contrasts."""
    from scenarios.commands.privacy_tables import vote_noises

    counted = None if quorum is None else TrustTerms(parties, quorum, colluding).honest
    record, text = vote_noises(
        majority=context.info_name == "majority-vote",
        parties=parties,
        classes=classes,
        regularisation=regularisation,
        epsilon=epsilon,
        delta=delta,
        dimension=dimension,
        contributors=counted,
    )
    tell(as_json, record, text=text)
