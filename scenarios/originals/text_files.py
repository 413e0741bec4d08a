"""Originals of texts, and files that scenarios read as they are."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from federation.contract.errors import InputError
from scenarios.data.text_sets import URL_DAYS
from scenarios.originals.downloads import Downloads, texts

if TYPE_CHECKING:  # imported where it is used, because it takes a while
    import pyarrow

VIDEOS = (
    "Youtube01-Psy.csv", "Youtube02-KatyPerry.csv", "Youtube03-LMFAO.csv", "Youtube04-Eminem.csv",
    "Youtube05-Shakira.csv",
)  # fmt: skip
_SENTIMENTS = {"-1": "negative", "0": "neutral", "1": "positive"}
_LINES_OF_A_TWEET = 3


def youtube_spam(found: Downloads) -> pyarrow.Table:
    """The five files of comments, with a header each: the text, whose video it is below, and ham or spam."""
    import pyarrow

    content, kinds, videos = [], [], []
    for name in VIDEOS:
        table, path = found.table(name), found.path(name)
        content += texts(table, "CONTENT", path).tolist()
        kinds += texts(table, "CLASS", path).tolist()
        videos += [name.partition("-")[2].removesuffix(".csv")] * table.num_rows
    if not {*kinds} <= {"0", "1"}:
        raise InputError(f"{found.path(VIDEOS[0])}: CLASS must be 0 or 1; download it again")
    return pyarrow.table({"content": content, "video": videos, "class": [["ham", "spam"][int(k)] for k in kinds]})


def tweets(found: Downloads) -> pyarrow.Table:
    """train.raw and test.raw: three lines a tweet, its text with $T$ for the target, the target, and -1, 0 or 1."""
    import pyarrow

    rows = []
    for part in ("train", "test"):
        with found.open(f"{part}.raw") as file:
            lines = file.read().decode("utf-8", errors="replace").splitlines()
        labels = [line.strip() for line in lines[2::_LINES_OF_A_TWEET]]
        if not lines or len(lines) % _LINES_OF_A_TWEET or not {*labels} <= {*_SENTIMENTS}:
            raise InputError(
                f"{found.path(f'{part}.raw')} must have three lines a tweet, the last of them -1, 0 or 1; download it "
                "again"
            )
        for text, target, label in zip(lines[::_LINES_OF_A_TWEET], lines[1::_LINES_OF_A_TWEET], labels, strict=True):
            rows.append((text.replace("$T$", target.strip()), _SENTIMENTS[label], part))
    return pyarrow.table(dict(zip(("text", "sentiment", "part"), map(list, zip(*rows, strict=True)), strict=True)))


def copied_days(found: Downloads, to: Path) -> None:
    """The days of URLs that scenarios use, in a folder of their own."""
    to.mkdir(parents=True, exist_ok=True)
    for path in [found.path(f"Day{day}.svm") for day in range(URL_DAYS)]:
        shutil.copyfile(path, to / path.name)


def copied(name: str, found: Downloads, to: Path) -> None:
    """A file as it is."""
    shutil.copyfile(found.path(name), to)
