"""Short names of variants: of the options in a long name those that tell it from the others of its run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from scenarios.settings.protocol_options import BASELINES, NOISE_FREE

_CALLED = {NOISE_FREE: "without noise"}  # baselines whose names are written otherwise in files
_BEFORE_OPTION = re.compile(r"-(?=[^\W\d])")  # so that 1e-06 stays whole


def options_of(name: str) -> list[str]:
    """The options in an automatic name, as they stand there behind the protocol.

    Examples:
        >>> options_of("soft_vote-output-regularisation=1e-06")
        ['output', 'regularisation=1e-06']
    """
    return _BEFORE_OPTION.split(name)[1:]


def is_published(name: str) -> bool:
    """Whether an option is as published: `published`, or one such as `published_laplace`; a chosen name may say so."""
    return any(map(_says_published, _BEFORE_OPTION.split(name)))


def labels(protocols: Mapping[str, str]) -> dict[str, str]:
    """A short name for each variant of a run, no two alike; `protocols` has the protocol of each.

    A name that somebody chose stays. Of an automatic one, which begins with its protocol, stay the options that the
    others of this protocol do not all have; one of several that the same variants have; and none that follows from
    another, because all with that one have it, too. "Published" always stays. The protocol stays beside other
    protocols, and where there are no options. The baseline `noise_free` is called "without noise".

    Examples:
        >>> names = ["soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.1"]
        >>> list(labels({**dict.fromkeys(names, "soft_vote"), "pooled": "pooled"}).values())
        ['soft_vote', 'gaussian', 'published', 'pooled']
        >>> labels({**dict.fromkeys(names, "soft_vote"), "mine": "majority_vote"})["soft_vote-gaussian"]
        'soft_vote gaussian'
    """
    automatic = {name: kind for name, kind in protocols.items() if name == kind or name.startswith(f"{kind}-")}
    short = {}
    several = len(set(protocols.values()).difference(BASELINES)) > 1
    for kind in dict.fromkeys(automatic.values()):
        told = _told_apart({name: options_of(name) for name, own in automatic.items() if own == kind})
        for name, options in told.items():
            short[name] = " ".join([_CALLED.get(kind, kind), *options] if several or not options else options)
    found = {name: short.get(name, name) for name in protocols}
    times = Counter(found.values())
    return {name: label if times[label] == 1 else name for name, label in found.items()}


def _told_apart(variants: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Of the options of each variant of a protocol those that tell it from the others, as `labels` says."""
    having: dict[str, set[str]] = {}
    for name, options in variants.items():
        for option in options:
            having.setdefault(option, set()).add(name)
    found = {}
    for name, options in variants.items():
        ranked = sorted(options, key=lambda option: (not _says_published(option), "=" in option, options.index(option)))
        kept: list[str] = []
        for option in ranked:
            follows = any(having[other] < having[option] for other in options)
            alike = any(having[other] == having[option] for other in kept)
            needless = follows or alike or len(having[option]) == len(variants)
            if _says_published(option) or not needless:
                kept.append(option)
        found[name] = [option for option in options if option in kept]
    return found


def _says_published(option: str) -> bool:
    return option.split("_")[0] == "published"
