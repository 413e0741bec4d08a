"""Who adds up a secure sum, as a scenario names it: one server, believed more or less, or two."""

from __future__ import annotations

from typing import Literal

from federation.sums.thresholds import Adversary

Servers = Literal["one", "one_semi_honest", "two"]

ADVERSARY: dict[Servers, Adversary] = {"one": "active", "one_semi_honest": "semi_honest", "two": "active"}
SAID: dict[Servers, str] = {
    "one": "one server that may do what it likes",
    "one_semi_honest": "one server that follows the protocol and only looks",
    "two": "two servers that do not collude",
}
