"""A query plan: typed nodes with weights of their own, float features on nodes, your own class."""

from dataclasses import dataclass, field

import numpy as np

import cortex
from cortex import relu

HIDDEN, FEATURES = 32, 4


@dataclass
class Plan:
    op: str
    features: np.ndarray
    inputs: list["Plan"] = field(default_factory=list)


@cortex.model
def cost(plan, w):
    """Each operator has its own layer; joins look at both inputs, scans at none."""
    if plan.op == "Scan":
        h = relu(w.scan @ plan.features)
    elif plan.op == "Join":
        left, right = cost(plan.inputs[0], w).h, cost(plan.inputs[1], w).h
        h = relu(w.join @ plan.features + w.join_left @ left + w.join_right @ right)
    else:
        h = relu(w.other @ plan.features + w.other_in @ cortex.sum(cost(p, w).h for p in plan.inputs))
    return cortex.state(h=h, cost=w.out @ h)


def features(seed):
    return np.random.default_rng(seed).random(FEATURES, dtype=np.float32)


def main():
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("scan", "join", "other"), (HIDDEN, FEATURES))
    shapes |= dict.fromkeys(("join_left", "join_right", "other_in"), (HIDDEN, HIDDEN)) | {"out": (HIDDEN,)}
    weights = {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}

    scans = [Plan("Scan", features(i)) for i in range(3)]
    plan = Plan("Sort", features(4), [Plan("Join", features(5), [Plan("Join", features(6), scans[:2]), scans[2]])])
    estimate = cortex.compile(cost, weights)
    out = estimate(plan)
    print("cost of the plan:", float(out.cost))
    print("cost of every operator:", np.round(out.nodes.cost, 3))


if __name__ == "__main__":
    main()
