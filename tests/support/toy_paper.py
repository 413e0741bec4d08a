"""A small paper of nobody, with values that were never measured, for tests of what is shown and kept."""

from scenarios.reproductions.paper import (
    Claim,
    Item,
    Kept,
    Observation,
    Paper,
    Part,
    Pick,
    Published,
    Reason,
    Record,
    Series,
)

PICK = Pick("soft_vote")
WIDE = {0: 0.70, 1: 0.74, 2: 0.72, 3: 0.76}
HIGHER = {split: value + 0.1 + split / 100 for split, value in WIDE.items()}


def toy_item(**changes) -> Item:
    """An item of the settings `one` and `two` with the series `high` and `low`."""
    known = dict(
        name="table1",
        title="Table 1: of a toy",
        place="Section 1",
        parts=(Part("one", "quickstart"), Part("two", "quickstart")),
        series=(Series("high", PICK, PICK, meaning="what is *high*"), Series("low", PICK)),
    )
    return Item(**{**known, **changes})


def toy_paper(*items: Item) -> Paper:
    """A paper of such items; published.csv knows nothing of it."""
    return Paper("toy", "Nobody 2000: Toys", "Of toys.", items)


def toy_kept(data=None, x="", **values) -> Kept:
    """Values by split of SERIES_ROLE in the setting `one`; by default two series, and of `high` two roles."""
    values = values or {"high_published": HIGHER, "high_default": WIDE, "low_published": WIDE}
    observations = [
        Observation("one", *name.split("_"), x, split, value)
        for name, by_split in values.items()
        for split, value in by_split.items()
    ]
    record = Record("federation reproduce toy --only table1", "0.1.0", False, {"one": 1}, {"one": 4}, data or {}, {})
    return Kept(observations, record)


def printed(monkeypatch, **values) -> None:
    """Make the paper say these values of the setting `one`, by series."""
    from scenarios.reproductions import compare as comparing

    known = {("one", series, ""): Published(value, 0.0005, 0.02, "Table 1") for series, value in values.items()}
    monkeypatch.setattr(comparing, "published", lambda paper, item: known)


CLAIM = Claim("high is higher", "high", "low", ("one",))
OTHER = Reason("other data", "toys differ", ("low",))
