"""One party's rows behind a public feature map, with real labels in the declared range."""

from __future__ import annotations

import numpy as np

from federation.contract.errors import InputError
from federation.questions.labels import LabelledRows
from parties.holdings.cohort import Cohort


def labelled(cohort: Cohort, party: int, declared: LabelledRows) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, d) and labels (n,), float64.

    Labels outside the declared range are moved to its nearer end, and what is no number to its lower one: a refusal
    would tell about a label. Raises `InputError` for rows out of form, or more of them than declared.
    """
    holdings = cohort.provider.holdings(party)
    holdings.require_usable()
    if holdings.party != party:
        raise InputError(f"asked for party {party}, the provider gave the rows of party {holdings.party}")
    if len(holdings.rows) > declared.most:
        raise InputError(f"party {party} holds {len(holdings.rows)} rows, declared are at most {declared.most}")
    labels = np.asarray(holdings.labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iufb":
        raise InputError("labels must be one number per row; check the provider's labels")
    rows = declared.feature_map.transform(np.asarray(holdings.rows, dtype=np.float64))
    lowest, highest = declared.label_range
    return rows, np.clip(np.nan_to_num(labels.astype(np.float64), nan=lowest), lowest, highest)
