"""A page as a browser has it: its tags, where its links lead, its charts and the text that is seen."""

import re
from html.parser import HTMLParser

from scenarios.reports.guarantee_page import GUARANTEE

_LEADS = ("src", "href", "action", "data")  # attributes that name a place


class Page(HTMLParser):
    """Of a page without handlers of events: `tags`, `links`, `officers` (links to pages of guarantees) and `charts`."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.officers: list[str] = []
        self.charts = 0
        self._texts: list[str] = []
        self._hidden = False
        self.feed(source)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._hidden = tag == "style"
        self.charts += ("class", "chart") in attributes
        for link in (value or "" for name, value in attributes if name in _LEADS):
            (self.officers if link.endswith(GUARANTEE) else self.links).append(link)
        assert not any(name.startswith("on") for name, _ in attributes)

    def handle_endtag(self, tag: str) -> None:
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self._texts.append(data)

    @property
    def text(self) -> str:
        """What is seen, with a space wherever the source has some."""
        return re.sub(r"\s+", " ", "".join(self._texts))
