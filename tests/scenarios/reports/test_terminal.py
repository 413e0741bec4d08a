"""The table as a person sees it in a terminal."""

import io
import math
import re

import pytest
from rich.console import Console

from scenarios.reports.summary import broken, summarise
from scenarios.reports.tables import tables


def row(variant="soft_vote", epsilon=1.0, split=0, noise=0, value=0.5, metric="accuracy", **more):
    base = {
        "scenario": "s", "protocol": variant.split("-")[0], "variant": variant, "default": 0, "epsilon": epsilon,
        "delta": 0.0, "unit": "none" if math.isinf(epsilon) else "party", "split": split, "noise": noise,
        "metric": metric, "value": value,
    }  # fmt: skip
    return base | more


def shown(summaries, width):
    console = Console(file=io.StringIO(), width=width)
    console.print(*tables(summaries, width))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_table_fits_the_terminal_and_says_everything(width):
    name = "soft_vote-output-published-regularisation=0.0001"
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, default=int(v == "soft_vote"), protocol="of_somebody")  # names stay
        for v in ("soft_vote", name)
        for e in (0.1, 0.3, 1.0, 3.0, 10.0)
        for n in (0, 1)
    ]
    rows += [row("soft_vote-output-off", math.inf, value=0.957), row("individual", math.inf, value=0.3)]
    text = shown(summarise(rows), width)
    assert max(map(len, text.splitlines())) <= width
    for part in ("soft_vote (default)", "ε = 0.1", "ε = 10", "NON-PRIVATE", "0.957", "published"):
        assert part in text
    assert text.count("(NON-PRIVATE)") >= 2  # in every block
    assert text.count("0.815") == 10
    assert text.count("± 0.007") == 10


def test_few_epsilons_stand_on_one_line():
    assert "0.815 ± 0.007" in shown(summarise([row(value=0.81), row(noise=1, value=0.82)]), 80)


def test_table_takes_names_as_text():
    rows = [row("[red]x[/red]", **{"data.source": "[/]"})]
    text = shown(summarise(rows), 100)
    assert "[red]x[/red]" in text
    assert "data.source = [/]" in text


def test_where_nothing_was_scored_there_is_no_table():
    assert tables([], 100) == []


def test_many_epsilons_are_shown_in_blocks_that_keep_names_whole():
    name = "own-name-of-soft-vote-output-published-regularisation=0.0001"
    made = [
        row(name, 2.0**e, split, value=0.5 + 0.01 * split, protocol="soft_vote") for e in range(8) for split in range(3)
    ]
    text = shown(summarise(made), 80)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("own-name-of-soft-vote-", "output-published-", "regularisation=0.0001"):
        assert text.count(part) == 2  # once in each block


NINE = (
    "soft_vote", "soft_vote-gaussian", "soft_vote-output-published", "soft_vote-output-tight-regularisation=1e-06",
    "soft_vote-output-published-regularisation=0.0001", "majority_vote", "majority_vote-published",
    "soft_vote-output-diameter-gaussian-regularisation=0.001", "majority_vote-output_decoder_of_unusual_name=0.25",
)  # fmt: skip


def test_nine_variants_six_epsilons_and_two_references_fit_in_two_blocks_without_broken_words():
    rows = [
        row(v, e, noise=n, value=0.81 + n / 100, **{"parties.classifier.logistic.regularisation": "0.01"})
        for v in NINE
        for e in (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
        for n in (0, 1)
    ]
    rows += [row(name, math.inf, value=0.9) for name in ("soft_vote-output-off", "pooled")]
    text = shown(summarise(rows), 80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("variant  ") == 2
    headers = re.findall(r"ε = \S+|(?<=  )NON-PRIVATE\n", text)
    assert headers == [*(f"ε = {e}" for e in ("0.1", "0.3", "1", "3", "10", "30")), "NON-PRIVATE\n"]
    first = [line[:22].strip() for line in text.splitlines()]
    words = {part for one in summarise(rows)[: len(NINE)] for part in broken(one.name, 22)}
    assert words <= set(first)  # every line of a name stands as it was broken, so the terminal broke none again
    assert {"soft_vote tight", "majority_vote", "decoder_of_unusual_"} <= words
    assert text.count("soft_vote tight") == 2  # once in each block


def test_what_is_claimed_is_explained():
    claimed = row("x-published", unit="none", metric="l1", value=0.3)
    kept = [row("x-off", math.inf, metric="l1", value=0.1), row("x", metric="l1", value=0.2)]
    text = shown(summarise([claimed, *kept]), 80)
    assert "L1 error" in text
    assert "NON-PRIVATE under some ε: it is claimed, not kept" in text
    assert "claimed" not in shown(summarise(kept), 80)


def test_what_keeps_another_epsilon_has_no_column_of_its_own():
    rows = [row("x", epsilon) for epsilon in (1.0, 2.0)]
    for aim, split in ((1.0, 0), (1.0, 1), (2.0, 0)):
        kept = 4.6 * aim + split / 10
        rows += [row("y", kept, split, metric=m, value=v) for m, v in (("aimed_epsilon", aim), ("accuracy", 0.75))]
    header, *_ = (line for line in shown(summarise(rows), 80).splitlines() if "variant" in line)
    assert header.split() == ["variant", "ε", "=", "1", "ε", "=", "2"]
    text = shown(summarise(rows), 80)
    assert re.search(r"ε = 4\.7 +ε = 9\.2", text)
    assert "kept instead of the one aimed at" in text
    assert "aimed" not in shown(summarise(rows[:2]), 80)


def test_a_setting_stands_once_above_its_variants():
    settings = [{"data.source": "digits"}, {"data.source": "rather_a_very_long_name"}]
    rows = [row(v, value=0.5, **setting) for setting in settings for v in ("soft_vote", "majority_vote")]
    text = shown(summarise(rows), 80)
    assert text.count("data.source = digits") == 1
    assert text.count("data.source =") == 2
    assert max(map(len, text.splitlines())) <= 80
    first = [line[:30].strip() for line in text.splitlines()[3:]]
    assert first[:8] == [
        "data.source = digits", "soft_vote", "majority_vote", "",
        "data.source = rather_a_very_", "long_name", "soft_vote", "majority_vote",
    ]  # fmt: skip


def test_nothing_is_said_of_intervals_which_are_not_shown():
    text = shown(summarise([row(split=split, value=0.25 + 0.5 * split) for split in (0, 1)]), 80)
    assert "0.500 ± 0.354" in text
    assert "two splits" not in text
    assert "0.250" not in text
