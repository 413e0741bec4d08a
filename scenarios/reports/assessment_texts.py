"""Assessments as sentences: whether releases are useful, what is lost to what, and what would help.

`bag_remarks` reports what estimators of class ratios found about their bags, over all releases of a run.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from aggregator.learners.class_ratios.catalogue import Verdict, said, verdict
from scenarios.reports.assessment import Finding, Goal, Interval, Remedy, Rival, in_words, rounded
from scenarios.reports.assessment import Verdict as VerdictVerdicts
from scenarios.reports.tables import listed
from scenarios.scores.results import CONSTANT_CLASS, Row, heading, shown
from scenarios.scores.scoring import L1, MSE

MARKS: Mapping[Finding | None, str] = {"useful": "✓", "no better": "✗", "cannot be told": "?", None: "→"}


def constant_answer(rows: Iterable[Row], classes: Sequence[str]) -> str:
    """What the baseline `constant` does, with the name of the class that it says in most splits, if names are known."""
    metrics = {MSE.name: "always saying the mean label", L1.name: "answering with the class shares of all private rows"}
    said: list[int] = []
    for row in rows:
        if row["metric"] in metrics:
            return metrics[row["metric"]]
        if row["metric"] == CONSTANT_CLASS:
            said.append(int(row["value"]))
    if not said or max(said) >= len(classes):
        return "always saying one class"
    return f"always saying “{classes[max(set(said), key=said.count)]}”"


def told(found: Sequence[VerdictVerdicts], answer: str) -> list[tuple[Finding | None, str]]:
    """The verdicts in sentences, one for all epsilons of a setting of which the same is to be said; then what is to be
    said beside it: remarks, the order of rows where that counts, what would help, and which variants are ahead. These
    find nothing of their own, and have None for a finding.

    `answer` is the `constant_answer`.

    Examples:
        >>> known = dict(variant="soft_vote", setting="", metric="accuracy", interval=None, splits=5, remarks=())
        >>> known |= dict(surely=1.0, constant=0.5, pooled=0.9, individual=0.7)
        >>> found = [
        ...     VerdictVerdicts(epsilon=1.0, finding="no better", mean=0.51, gain=0.01, kept=0.025, **known),
        ...     VerdictVerdicts(epsilon=3.0, finding="useful", mean=0.8, gain=0.3, kept=0.75, **known),
        ... ]
        >>> for finding, sentence in told(found, "always saying “no”"):
        ...     print(sentence)
        soft_vote is no better than always saying “no” at ε = 1: accuracy 0.510, that has 0.500
        soft_vote is useful at ε = 3: accuracy 0.800, always saying “no” has 0.500, one party alone 0.700, all rows
        pooled 0.900; 75 % of that gain are kept
    """
    groups: dict[tuple[str, str, Finding, bool], list[VerdictVerdicts]] = {}
    for one in found:
        groups.setdefault((one.variant, one.setting, one.finding, one.doubtful), []).append(one)
    sentences: list[tuple[Finding | None, str]] = []
    for (variant, setting, finding, _), members in groups.items():
        start = f"{setting}: {variant}" if setting else variant
        beside = [*_remarks(members), *_order(members), *_help(finding, members), *_ahead(members)]
        sentences.append((finding, f"{start} {_sentence(finding, members, answer)}"))
        sentences += [(None, f"{start} {part}") for part in beside]
    return sentences


def _sentence(finding: Finding, members: Sequence[VerdictVerdicts], answer: str) -> str:
    first = members[0]
    reached = f"{_name(first)} {listed([shown(first.metric, one.mean) for one in members])}"
    constant, where = shown(first.metric, first.constant), _at(members)
    if finding == "no better":
        beats = "cannot be counted on to beat" if first.doubtful else "is no better than"
        return f"{beats} {answer} {where}: {reached}, that has {constant}{_in_the_way(members)}"
    if finding == "useful":
        alone = "" if first.individual is None else f", one party alone {shown(first.metric, first.individual)}"
        beside = f"is useful {where}: {reached}, {answer} has {constant}{alone}"
        if first.pooled is None or first.kept is None:
            return beside
        kept = listed(
            [f"{100 * share:.0f}" if share <= 1 else "more than 100" for share in (one.kept or 0 for one in members)]
        )
        return f"{beside}, all rows pooled {shown(first.metric, first.pooled)}; {kept} % of that gain are kept" + (
            _where_it_goes(members)
        )
    intervals = [" to ".join(f"{end:+.3g}" for end in one.interval) for one in members if one.interval is not None]
    ends = f" (95 % interval of the difference: {listed(intervals)})" if intervals else ""
    more = f"{first.splits} split{'' if first.splits == 1 else 's'}; raise trials.splits"
    known = (("all rows pooled", first.pooled), ("without its noise", first.noise_free))
    others = [f"{name} {shown(first.metric, value)}" for name, value in known if value is not None]
    return (
        f"may be better than {answer} {where} or not, which cannot be told from {more}: {reached}, "
        f"{', '.join([f'that has {constant}{ends}', *others])}"
    )


def _in_the_way(members: Sequence[VerdictVerdicts]) -> str:
    """Whether it is the data, the protocol or the noise for which releases are no better, where that is known."""
    first = members[0]
    if first.pooled is not None and first.kept is None:
        return "; nor are all rows pooled"
    if first.noise_free is None:
        return ""
    free = shown(first.metric, first.noise_free)
    if first.without_noise == "no better":
        helped = any(one.remedies for one in members)  # noise may help where it keeps a learner from extremes
        return f"; nor is it without its noise ({free})" + ("" if helped else ", so that less noise would not help")
    if first.without_noise == "useful":
        return f"; without its noise it is useful, with {free}"
    return f"; without its noise it has {free}"


def _where_it_goes(members: Sequence[VerdictVerdicts]) -> str:
    """What is lost to the protocol, which without noise is one for all epsilons, and what to the noise."""
    lost = [one.lost for one in members if one.lost is not None]
    if len(lost) < len(members):
        return ""
    noises = [_share(one.to_noise, one.noise_interval) for one in lost]
    protocol = _share(lost[0].to_protocol, lost[0].protocol_interval)
    if {protocol, *noises} == {"0"}:
        return ""
    noise = "nothing that can be told" if set(noises) == {"0"} else f"{listed(noises)} %"
    if protocol == "0":
        return f"; the protocol itself loses nothing that can be told, its noise {noise}"
    return f"; the protocol itself loses {protocol} %, its noise {noise}"


def _share(lost: float, interval: Interval | None) -> str:
    """In percent; 0 where splits leave open whether anything is lost."""
    return f"{100 * lost:.0f}" if interval is not None and interval[0] > 0 else "0"


def _remarks(members: Sequence[VerdictVerdicts]) -> Iterator[str]:
    alike: dict[str, list[VerdictVerdicts]] = {}
    for one in members:
        for remark in one.remarks:
            alike.setdefault(remark, []).append(one)
    yield from (f"{_at(several)}: {remark}" for remark, several in alike.items())


def _order(members: Sequence[VerdictVerdicts]) -> Iterator[str]:
    """AUC, where classes are uneven."""
    ranked = [(one, one.ranking) for one in members if one.ranking is not None]
    if not ranked:
        return
    first = ranked[0][1]
    known = {
        "one party alone": first.individual,
        "all rows pooled": first.pooled,
        "without its noise": first.noise_free,
    }
    beside = [f"{name} {shown('auc', value)}" for name, value in known.items() if value is not None]
    values = listed([shown("auc", one.mean) for _, one in ranked])
    yield (
        f"{_at([one for one, _ in ranked])}, as an order of rows: AUC {values}"
        f" ({', '.join(['0.5 is chance', *beside])})"
    )


def _help(finding: Finding, members: Sequence[VerdictVerdicts]) -> Iterator[str]:
    """What would make releases useful, or keep half of the pooled gain where they are useful already."""
    goal: Goal = "half" if finding == "useful" else "useful"
    alike: dict[Interval, list[tuple[float, Remedy]]] = {}
    for one in members:
        for remedy in one.remedies:
            if remedy.goal == goal:
                alike.setdefault(remedy.between, []).append((one.epsilon, remedy))
    verb = "would keep" if goal == "half" else "would be"
    yield from (f"{verb} {in_words(wanted, goal)}" for wanted in alike.values())
    if finding != "useful":
        helped = {epsilon for wanted in alike.values() for epsilon, _ in wanted}
        yield from _needed([one for one in members if one.epsilon not in helped and one.without_noise != "no better"])


def _needed(members: Sequence[VerdictVerdicts]) -> Iterator[str]:
    """How many parties it takes by public numbers, where the run's own curve does not say."""
    loud = [(one, one.parties_needed) for one in members if one.parties_needed is not None]
    if loud:
        many = listed([str(rounded(needed)) for _, needed in loud])
        where = _at([one for one, _ in loud])
        yield f"would need about {many} parties {where} for noise a quarter as loud as all that they can say"


def _ahead(members: Sequence[VerdictVerdicts]) -> Iterator[str]:
    """Which variants of the run are ahead, and with what guarantee."""
    alike: dict[tuple[str, tuple[str, ...]], list[tuple[VerdictVerdicts, Rival]]] = {}
    for one in members:
        for rival in one.rivals:
            alike.setdefault((rival.variant, rival.differs), []).append((one, rival))
    for (variant, differs), pairs in alike.items():
        (leading, first), where = pairs[0], _at([one for one, _ in pairs])
        known = {
            "delta": f"δ = {first.delta:g}",
            "unit": f"for one {first.unit.replace('_', ' ')}",
            "adjacency": "for other neighbours",
        }
        other = f"another guarantee ({', '.join(known[name] for name in differs)})"
        values = listed([shown(one.metric, rival.mean) for one, rival in pairs])
        guarantee = other if differs else "the same guarantee"
        yield f"is behind {variant} {where}, which with {guarantee} has {_name(leading)} {values}"


def _name(one: VerdictVerdicts) -> str:
    return heading(one.metric).split(" (")[0]


def _at(members: Sequence[VerdictVerdicts]) -> str:
    known = [f"{one.epsilon:g}" for one in members if not math.isinf(one.epsilon)]
    return f"at ε = {listed(known)}" if known else "without noise"


_OF_A_RELEASE = ("weight_", "error_")
_KNOWN = ("bags", "drift_p_value")


def bag_remarks(rows: Iterable[Row]) -> list[str]:
    """One line for every variant and every reason that its releases had to warn, most frequent first.

    `rows` are those of results.csv. Numbers are means over the releases that the line is about.
    """
    found: dict[str, dict[tuple[object, ...], dict[str, float]]] = {}
    for row in rows:
        metric = row["metric"]
        if metric in _KNOWN or metric.startswith(_OF_A_RELEASE):
            place = tuple(value for key, value in row.items() if key not in ("noise", "metric", "value"))
            found.setdefault(row["variant"], {}).setdefault(place, {})[metric] = row["value"]
    return [line for variant, known in found.items() for line in _of_variant(variant, list(known.values()))]


def _of_variant(variant: str, releases: list[dict[str, float]]) -> list[str]:
    checked = [release for release in releases if "bags" in release]
    by_verdict: dict[Verdict, list[dict[str, float]]] = {}
    for release in checked:
        by_verdict.setdefault(verdict(release), []).append(release)
    lines = []
    for alike in sorted(by_verdict.values(), key=len, reverse=True):
        words = said(_mean(alike))
        if words is not None:
            share = "" if len(alike) == len(checked) else f"in {len(alike)} of {len(checked)} releases "
            lines.append(f"{variant}: {share}{words}")
    return lines


def _mean(releases: list[dict[str, float]]) -> Mapping[str, float]:
    """Return the mean of every number over the releases; a weight that is not said is 0."""
    names = dict.fromkeys(name for release in releases for name in release)
    return {
        name: float(np.mean([release.get(name, 0.0 if name.startswith("weight_") else np.nan) for release in releases]))
        for name in names
    }
