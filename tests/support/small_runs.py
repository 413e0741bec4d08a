"""A small scenario with every kind of variant."""


def document(**changes):
    return {
        "name": "small",
        "data": {"source": "digits", "auxiliary": 200, "features": [{"whiten": 8}, "unit_norm"]},
        "parties": {"count": 60, "rows": 5},
        "protocols": [
            {"kind": "soft_vote"},
            {"kind": "soft_vote", "perturb": "output", "sensitivity": "published", "regularisation": [0.01, 1]},
            {"kind": "majority_vote"},
            {"kind": "pooled"},
            {"kind": "individual"},
        ],
        "privacy": {"epsilon": [1, 30]},
        "trials": {"splits": 2, "noise": 3},
        **changes,
    }
