"""The answers that a site has given, as they left it: a question that comes again gets the same bytes, and costs nothing.

An answer is sent only once it is here, so at most one ever leaves for a question, whatever fails in between.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from federation.letters.letters import Head, SealedAnswer

_PARTS = ("ephemeral", "sealed", "signature")
