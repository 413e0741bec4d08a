"""A data frame of one's own: parties by a column, a released model, predictions for new rows.

Any data frame will do: pandas, Polars, DuckDB, Arrow. Run it: python docs/examples/own_frame.py
"""

from __future__ import annotations

import numpy as np
import pyarrow

import scenarios


def sales(shops: int, seed: int) -> pyarrow.Table:
    """What customers of many shops bought, and whether they came back."""
    rng = np.random.default_rng(seed)
    rows = 30 * shops
    visits, spent = rng.poisson(3, rows), rng.gamma(2, 20, rows)
    returned = rng.random(rows) < 1 / (1 + np.exp(4 - visits - spent / 40))
    return pyarrow.table(
        {
            "shop": [f"shop {i % shops}" for i in range(rows)],
            "visits": visits,
            "spent": spent,
            "returned": np.where(returned, "yes", "no"),
        }
    )


def main() -> None:
    """Every shop is a party: whoever sees the model cannot tell what all customers of one shop were like."""
    scenario = {
        "name": "shops",
        "data": {"label": "returned", "classes": ["no", "yes"]},
        "parties": {"count": None, "partition": {"by": "shop"}},
        "privacy": {"epsilon": [1, 5]},
        "trials": {"splits": 3, "noise": 3},
    }
    run = scenarios.run(scenario, data=sales(shops=100, seed=1))
    for _, sentence in run.sayings:
        print(sentence)
    model = run.model(epsilon=5)
    new = sales(shops=2, seed=2)
    print(model, "promises", {key: model.guarantee_[key] for key in ("unit", "epsilon", "delta")})
    print("accuracy on customers of new shops:", model.score(new, new.column("returned").to_pylist()))


if __name__ == "__main__":
    main()
