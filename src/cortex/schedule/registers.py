"""Register tiles: how large they may be on a machine, and what is left to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TileChoice:
    """How sums are tiled: at most `wide` vectors of sums in a row and `tallest` rows, `unroll` steps at a time.

    The registers may allow less. `unroll` None leaves the number to the height of the tile. Tiles of rows run inside
    blocks of columns, or around them with `rows_first`.
    """

    wide: int = 4
    tallest: int = 9
    unroll: int | None = None
    rows_first: bool = False


AS_REGISTERS_ALLOW = TileChoice()


@dataclass(frozen=True)
class SumsNest:
    """What a nest of sums is, as far as the choice of its tile depends on it.

    Each of `steps` steps of a sum reads `weights` vectors of weights per vector of `columns` and `broadcasts` single
    elements per row, for `sums` sums. `rows` is the number of rows where it is the same for every node, and None
    where nodes are the rows. `name` is the loop over nodes.
    """

    name: str
    sums: int
    weights: int
    broadcasts: int
    columns: int
    steps: int
    rows: int | None


@dataclass(frozen=True)
class Registers:
    """The vector registers of the machine: how many there are, how many f32 one holds, how many hold broadcasts."""

    count: int
    lanes: int
    broadcasts: int = 1
    chains: int = 8
    """Sums that go on at the same time where each multiply-add waits for the one before it."""

    def most_sums(self) -> int:
        """Accumulators a cluster may have before tiles get too low to hide the latency of an addition."""
        return max(1, (self.count - 1 - self.broadcasts) // 5)

    def tile(self, sums: int, weights: int, columns: int, choice: TileChoice = AS_REGISTERS_ALLOW) -> tuple[int, int]:
        """(height, vectors) of the tile for `sums` accumulators fed by `weights` vectors of weights per column block.

        rows * sums * vectors accumulators, the weights and the broadcast operands fit the registers.
        """
        wide = choice.wide if self.count >= 32 else max(1, choice.wide // 2)
        vectors = max(1, min(wide // max(sums, weights), -(-columns // self.lanes)))
        height = (self.count - self.broadcasts - weights * vectors) // (sums * vectors)
        return max(1, min(height, choice.tallest)), vectors

    def unroll(self, accumulators: int) -> int:
        """Iterations of a reduction to run at a time: enough to hide what a loop costs, and no more, as all is code.

        Where elements come from registers, more: a load brings several, of which each is used.
        """
        if self.broadcasts > 1:
            return 8 if accumulators * 5 <= self.count * 2 else 4 if accumulators * 5 <= self.count * 3 else 1
        return 4 if accumulators * 8 <= self.count else 2 if accumulators * 4 <= self.count else 1
