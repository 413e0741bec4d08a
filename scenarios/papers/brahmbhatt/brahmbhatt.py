"""Brahmbhatt, Saket, Havaldar, Nasery and Raghuveer 2023: label differential privacy by weighted sums over bags."""

from __future__ import annotations

from functools import partial

from scenarios.papers.brahmbhatt.guarantees import lemma_3_4, theorem_1_2, theorem_d1
from scenarios.papers.brahmbhatt.instances import instances
from scenarios.papers.brahmbhatt.linear import LINEAR, SPLITS, table_1
from scenarios.papers.brahmbhatt.networks import MEASURED, RHO, network_of, table
from scenarios.papers.brahmbhatt.substitutes import CENSUS, CRITEO, OTHER_DATA, SOURCES
from scenarios.reproductions.paper import Claim, Item, Paper, Reason, Series

_SIZES = tuple(sorted({size for *_, sizes in SOURCES.values() for size in sizes}))
_AT = tuple(map(str, _SIZES))
_COUNTS = sorted({count for _, _, counts, _ in SOURCES.values() for count in counts})
_OTHER = Reason("other data", OTHER_DATA)
_MORE_BAGS = "with increasing number of bags the test loss is closer to that of every label"

TABLE_1 = Item(
    name="table1",
    title="Table 1: test error of wtd-LBA by number m and size k of bags",
    place="Appendix K.2",
    series=tuple(Series(f"m = {count}") for count in _COUNTS),
    metric="mse",
    axis="k",
    at=_AT,
    compute=table_1,
    claims=(
        Claim(_MORE_BAGS, "m = 512", "m = 1024", (CRITEO,)),
        Claim(_MORE_BAGS, "m = 1024", "m = 2048", (CENSUS,)),
    ),
    reasons=(
        _OTHER,
        Reason(
            "unpublished setting",
            "how rows are scaled, where training starts and what early stopping watches are not given; we start at 0 "
            "and do not stop early",
        ),
    ),
    about="As published: secret Gaussian weights, no noise, and 200 epochs of Adam at the published rates, whose "
    "steps count instances (1024 for Criteo, 8192 for the census). Default: least squares on the same sums, in "
    "closed form. Neither has a guarantee (see Theorem 1.2). The paper's errors depend on nearly m times k alone, "
    "as the number of such steps does, and so do ours as published: they measure how far Adam has come. The error of "
    "the sums themselves falls with m and does not depend on k, as s² (1 + r/(m - r - 1)) says for noise s² and r "
    f"features. Scenarios take the same recipe by `weighted_lba` with `solver: adam`. Splits are {SPLITS}, the paper's "
    "10. As our sets are much smaller than the paper's, rows of bags are drawn with replacement. Behind ± stands the "
    "paper's standard deviation.",
    minutes=(3.0, 0.4),
)


def _network_table(number: int) -> Item:
    """One of Tables 2 to 6."""
    cells = ", ".join(f"m = {count} and k = {size} of {name}" for name, own in MEASURED.items() for count, size in own)
    return Item(
        name=f"table{number}",
        title=f"Table {number}: test error of noisy-wtd-LLP with a network, noise on a share {RHO[number]:g} of labels",
        place="Appendix K.2",
        series=tuple(Series(f"m = {count}") for count in _COUNTS),
        metric="mse",
        axis="k",
        at=_AT,
        compute=partial(table, number),
        claims=(Claim(_MORE_BAGS, "m = 512", "m = 1024", (CRITEO,), at=("32",)),),
        reasons=(
            _OTHER,
            Reason("unpublished setting", "the copy of the paper at hand has lost rho: we take 0.1 to 0.5 in turn"),
        ),
        about="As published: Gaussian weights, noise of deviation 1 on a fixed share of the labels, Adam at the "
        "published rates on batches that count instances, and the parameters of the last epoch. Default: signs, "
        "noise on the same share of the labels of every bag, steps of 16 bags or more, averaged parameters of the best "
        "epoch. Noise of deviation 1 on labels from 0 to 52 or 21 hides nearly nothing: our default at the same noise "
        "is as NON-PRIVATE. Measured are the cells whose disjoint bags our sets have rows for: "
        f"{cells}.",
        minutes=(1.0, 0.2),
    )


INSTANCES = Item(
    name="instances",
    title="Tables 1 to 6, first lines: test error from every label",
    place="Appendix K.2",
    series=tuple(Series(name) for name in (LINEAR, *map(network_of, RHO))),
    metric="mse",
    compute=instances,
    reasons=(_OTHER,),
    about="Without any protection (NON-PRIVATE). As published the network's steps count instances and its last "
    "parameters are kept, by default it is trained as in Tables 2 to 6. Nothing in it depends on rho: the same runs "
    "stand beside all five tables.",
    minutes=(2.6, 0.6),
)
THEOREM_D1 = Item(
    name="theoremd1",
    title="Theorem D.1: log10 of delta of noisy-wtd-LLP at epsilon 1, by the size k of bags",
    place="Appendix D",
    series=(
        Series("Theorem D.1", meaning="its proof with the best constants that its steps allow; the paper has none"),
        Series("exact", meaning="the least delta of the published mechanism. Default: signs, as many noisy labels"),
        Series("simulated", meaning="the mean over 40,000 simulated bags and weights, five times"),
    ),
    metric="log10 of delta",
    axis="k",
    at=("32", "128", "512", "2048", "8192"),
    compute=theorem_d1,
    check=True,
    about="For one replaced label; 100 bags that hold all rows, and noise of the deviation of the labels' range. The "
    "bound is above the exact value by many powers of ten, and useless (0) where bags are small; so are sums without "
    "noise, of which Appendix A says that delta is m k / n, here 1. Deltas too small for a double are left out. "
    "`federation privacy llp` tells all of this for other numbers.",
    minutes=(0.2, 0.2),
)
THEOREM_1_2 = Item(
    name="theorem12",
    title="Theorem 1.2: log10 of delta of wtd-LBA at epsilon 1, by the size k of bags",
    place="Section 1.2",
    series=(
        Series(
            "exact",
            meaning="of the most exposed label of a bag, on these data only: no guarantee. Default: noise on the sums, "
            "which promises 1e-6 for one label of all data",
        ),
    ),
    metric="log10 of delta",
    axis="k",
    at=("64", "256", "1024"),
    compute=theorem_1_2,
    about="The theorem's delta, exp(-Omega(sqrt k)), has no constants, and needs data that no linear model explains: "
    "on other data delta is 1 for every k. So it is no guarantee that a release could state. Its condition cannot be "
    "made public either, as it depends on the labels. `federation privacy lba` tells the exact values for a file.",
    minutes=(0.5, 0.2),
)
LEMMA_3_4 = Item(
    name="lemma34",
    title="Lemma 3.4: the least linear loss within a bag, as a share of that of all rows",
    place="Section 3.1",
    series=(
        Series("in a bag", meaning="mean over random bags, which stand as splits"),
        Series("least of these bags", meaning="the lemma speaks of every bag"),
        Series("(k - r) / k", meaning="what is expected of k rows with r features that all vary within a bag"),
    ),
    metric="share",
    axis="k",
    at=("32", "64", "128", "256", "512", "1024"),
    compute=lemma_3_4,
    about="The lemma says that the loss of all rows is approximately kept in each bag, with a probability whose "
    "constants are not given. In bags of no more rows than features nothing of it may be left: the label sum then is a "
    "function of the row sums, and a label's change is seen for sure (Appendix J). That happens in the census at the "
    "sizes of bags that Table 1 begins with.",
    minutes=(0.3, 0.3),
)

PAPER = Paper(
    name="brahmbhatt",
    citation="Brahmbhatt et al. 2023: Label Differential Privacy via Aggregation",
    about="Weighted sums over random bags in place of labels: wtd-LBA sums rows and labels with secret weights and "
    "adds no noise, noisy-wtd-LLP publishes rows and weights and adds noise to some labels. The first has no "
    "guarantee for all data, and the second none to speak of at the noise that was measured; with as much noise as a "
    "guarantee needs, label_sums and private_labels are more accurate than either. The paper's two sets cannot be "
    "had, so that cells can be compared in their order only.",
    items=(TABLE_1, *map(_network_table, RHO), INSTANCES, THEOREM_D1, THEOREM_1_2, LEMMA_3_4),
)
