"""The cost of query plans: a unit for each operator, over the dictionaries that EXPLAIN (FORMAT JSON) gives."""

import json

import torch
from from_pytorch import compare
from torch import nn

import cortex

PLANS = """[
 {"Node Type": "Sort", "Plan Rows": 120, "Plan Width": 64, "Total Cost": 9120.5, "Plans": [
  {"Node Type": "Hash Join", "Plan Rows": 120, "Plan Width": 64, "Total Cost": 9100.1, "Plans": [
   {"Node Type": "Seq Scan", "Plan Rows": 50000, "Plan Width": 32, "Total Cost": 4400.0},
   {"Node Type": "Hash", "Plan Rows": 900, "Plan Width": 32, "Total Cost": 310.0, "Plans": [
    {"Node Type": "Nested Loop", "Plan Rows": 900, "Plan Width": 32, "Total Cost": 300.0, "Plans": [
     {"Node Type": "Seq Scan", "Plan Rows": 30, "Plan Width": 16, "Total Cost": 12.0},
     {"Node Type": "Index Scan", "Plan Rows": 30, "Plan Width": 16, "Total Cost": 8.3}]}]}]}]},
 {"Node Type": "Hash Join", "Plan Rows": 7000, "Plan Width": 48, "Total Cost": 2210.0, "Plans": [
  {"Node Type": "Index Scan", "Plan Rows": 7000, "Plan Width": 24, "Total Cost": 1200.0},
  {"Node Type": "Hash", "Plan Rows": 400, "Plan Width": 24, "Total Cost": 410.0, "Plans": [
   {"Node Type": "Seq Scan", "Plan Rows": 400, "Plan Width": 24, "Total Cost": 400.0}]}]}
]"""
INPUTS = {"Sort": 1, "Hash": 1, "Hash Join": 2, "Nested Loop": 2, "Seq Scan": 0, "Index Scan": 0}


class PlanCost(nn.Module):
    """A plan-structured network: each operator has layers of its own, and takes the outputs of its inputs."""

    def __init__(self, dim=64):
        super().__init__()
        self.units = nn.ModuleDict(
            {
                operator.replace(" ", "_"): nn.Sequential(
                    nn.Linear(3 + inputs * dim, 128), nn.ReLU(), nn.Linear(128, dim), nn.ReLU()
                )
                for operator, inputs in INPUTS.items()
            }
        )
        self.cost = nn.Linear(dim, 1)

    def encode(self, plan):
        numbers = torch.tensor([plan["Plan Rows"], plan["Plan Width"], plan["Total Cost"]], dtype=torch.float)
        below = [self.encode(each) for each in plan.get("Plans", [])]
        return self.units[plan["Node Type"].replace(" ", "_")](torch.cat([torch.log1p(numbers), *below]))

    def forward(self, plan):
        return self.cost(self.encode(plan))


@torch.no_grad()
def main():
    plans = json.loads(PLANS)
    module = PlanCost().eval()

    fast = cortex.compile(module, examples=plans)

    print("costs:", [round(float(fast(plan)), 4) for plan in plans])
    compare(module, fast, plans)


if __name__ == "__main__":
    main()
