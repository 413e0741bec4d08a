"""Rows of results as figures are drawn from, and what is read off a drawn figure."""

import math

import numpy as np
from matplotlib.collections import FillBetweenPolyCollection

VARIANTS = ("soft_vote", "soft_vote-gaussian", "soft_vote-output-published-regularisation=0.0001", "majority_vote")


def row(variant="soft_vote", epsilon=1.0, split=0, noise=0, value=0.5, metric="accuracy", **more):
    base = {
        "scenario": "s", "protocol": variant.split("-")[0], "variant": variant, "default": 0, "epsilon": epsilon,
        "delta": 0.0, "unit": "none" if math.isinf(epsilon) else "party", "split": split, "noise": noise,
        "metric": metric, "value": value,
    }  # fmt: skip
    return base | more


def rows(epsilons=(0.1, 1.0, 10.0), variants=VARIANTS, settings=({},), metrics=("accuracy",), references=True):
    made = []

    def add(variant, epsilon, split, noise, value, setting):
        default = int(variant == variants[0])
        made.extend(
            row(variant, epsilon, split, noise, value, metric, default=default, **setting) for metric in metrics
        )

    for place, setting in enumerate(settings):
        for i, variant in enumerate(variants):
            for epsilon in (math.inf,) if variant.endswith("off") else epsilons:
                for split in range(3):
                    for noise in range(2):
                        value = 0.8 / (1 + math.exp(i - min(epsilon, 9.0) / 3)) + split / 100 + noise / 50 + place / 40
                        add(variant, epsilon, split, noise, value, setting)
        for split in range(3) if references else ():
            add("pooled", math.inf, split, 0, 0.9 + split / 1000, setting)
            add("individual", math.inf, split, 0, 0.3, setting)
    return made


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def watermarked(figure):
    return any(text.get_text() == "NON-PRIVATE" for text in figure.texts)


def bands(figure):
    return [len([c for c in axes.collections if isinstance(c, FillBetweenPolyCollection)]) for axes in figure.axes]


SHARES = (0.1, 0.25, 0.9)


def ratio_rows(variants=("x", "x-published_a", "x-off"), epsilons=(0.5, 1.0, 2.0), settings=({},), shares=SHARES):
    """Errors in class ratios, smallest at a share of .25 and epsilon 2; those of x-published_a are no guarantee."""
    made = []
    for setting in settings:
        for v, variant in enumerate((*variants, "pooled")):
            reference = variant in ("x-off", "pooled")
            for epsilon in (math.inf,) if reference else epsilons:
                for split in range(3):
                    base = {
                        "scenario": "s", "protocol": variant.split("-")[0], "variant": variant, "default": int(v == 0),
                        "epsilon": epsilon, "delta": 0.0, "split": split, "noise": 0, **setting,
                        "unit": "none" if reference or "published" in variant else "label",
                    }  # fmt: skip
                    errors = [0.1 + 0.1 * v + abs(q - 0.25) / min(epsilon, 9) + split / 100 for q in shares]
                    made.append({**base, "metric": "l1", "value": float(np.mean(errors))})
                    made += [
                        {**base, "metric": f"l1_at_{q:g}", "value": error}
                        for q, error in zip(shares, errors, strict=True)
                    ]
    return made


def hollow(figure):
    """Whether markers are hollow, by the first line of the legend's entries."""
    handles = zip(legend(figure), figure.legends[0].get_lines(), strict=True)
    return {name: line.get_markerfacecolor() == "white" for name, line in handles}


def squared_errors(*scales):
    """Rows whose values are squared errors, those of variant i times scales[i]."""
    made = rows(metrics=("mse",), variants=VARIANTS[: len(scales)], references=False)
    factors = dict(zip(VARIANTS, scales, strict=False))
    return [row | {"value": row["value"] * factors[row["variant"]]} for row in made]
