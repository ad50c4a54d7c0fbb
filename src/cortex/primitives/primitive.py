"""What convolutions and products have in common: compiled for every shape when it is first met, then only called."""

from __future__ import annotations

import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Generic, NamedTuple, TypeVar, get_args

import numpy as np

from cortex.codegen.target import Target
from cortex.errors import ModelError, StructureError
from cortex.ilir.ir import Func
from cortex.primitives.choose import Cost
from cortex.primitives.compiled import Compiled, compile_primitive
from cortex.primitives.given import array_of, is_whole, whole_number
from cortex.runtime.kernel import Kernel
from cortex.runtime.storage import Array

Problem = TypeVar("Problem", bound=Hashable)
Axes = tuple[int, ...]


@dataclass(frozen=True)
class Plan(Generic[Problem]):
    """How an input is seen: the problem it poses, the axes that lay it (and the result) out as the program wants it.

    `shape` is the result's as the program lays it out, `back` gives it the caller's axes.
    """

    problem: Problem
    into: Axes | None
    shape: tuple[int, ...]
    back: Axes | None


class Lowered(NamedTuple):
    """A program, its weights, and whether its epilogue is long."""

    func: Func
    params: Mapping[str, Array]
    long_epilogue: bool


@dataclass(frozen=True)
class _Call:
    """A plan with its kernel; no kernel where the result is empty."""

    plan: Plan[Any]
    kernel: Kernel | None
    threads: int
    copies: bool


class Primitive(ABC, Generic[Problem]):
    """A callable on arrays that compiles itself for the shapes it meets."""

    def __init__(self, who: str, threads: int, tune: int, cost: Cost, target: Target) -> None:
        self._who, self._target = who, target
        if cost not in get_args(Cost):
            names = " or ".join(repr(name) for name in get_args(Cost))
            raise ModelError(f"{who}: cost={cost!r}; variants are ranked by {names}")
        self._cost = cost
        self._threads = whole_number(threads, who, "threads", 1)
        self._tune = whole_number(tune, who, "tune", 0)
        self._calls: dict[tuple[Any, ...], _Call] = {}
        self._compiled: dict[tuple[Problem, int], Compiled] = {}
        self._compiling = threading.Lock()

    @abstractmethod
    def _plan(self, x: Array, residual: bool) -> Plan[Problem]:
        """The plan for an input; a StructureError for one that does not fit."""

    @abstractmethod
    def _lowered(self, problem: Problem) -> Lowered:
        """The program of a problem, and its weights."""

    def compiled(self, problem: Problem, threads: int = 1) -> Compiled:
        """What runs for a problem on so many threads: its variant, schedule and kernel."""
        key = (problem, threads)
        found = self._compiled.get(key)
        if found is None:
            with self._compiling:
                found = self._compiled.get(key)
                if found is None:
                    func, params, is_long = self._lowered(problem)
                    found = compile_primitive(
                        func,
                        params,
                        target=self._target,
                        threads=threads,
                        long_epilogue=is_long,
                        cost=self._cost,
                        tune=self._tune,
                    )
                    self._compiled[key] = found
        return found

    def _call(self, x: Any, residual: Any, out: Any, threads: int | None) -> Any:
        given = array_of(x, self._who, "the input")
        count = self._threads if threads is None else whole_number(threads, self._who, "threads", 1)
        key = (given.shape, given.strides, residual is None, count)
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = self._prepared(given, residual is not None, count)
        plan = call.plan
        seen = given if plan.into is None else given.transpose(plan.into)
        inputs: tuple[Array, ...] = (np.ascontiguousarray(seen) if call.copies else seen,)
        if residual is not None:
            inputs = (*inputs, np.ascontiguousarray(self._like_result(residual, plan, "residual")))
        into = None if out is None else self._written(out, plan)
        if call.kernel is None:
            result = np.empty(plan.shape, np.float32)
        else:
            result = call.kernel.run(inputs, into, plan.shape, call.threads)
        if out is not None:
            return out
        result = result if plan.back is None else result.transpose(plan.back)
        return result if given is x else sys.modules["torch"].from_numpy(result)  # a tensor for a tensor

    def _prepared(self, given: Array, residual: bool, threads: int) -> _Call:
        plan = self._plan(given, residual)
        seen = given if plan.into is None else given.transpose(plan.into)
        found = self.compiled(plan.problem, threads) if prod(plan.shape) else None
        kernel, count = (None, 1) if found is None else (found.kernel, found.threads)
        return _Call(plan, kernel, count, not is_whole(seen))

    def _like_result(self, x: Any, plan: Plan[Problem], what: str) -> Array:
        """An array of the caller's with the shape of the result, laid out as the program does it."""
        found = array_of(x, self._who, what)
        shape = plan.shape if plan.back is None else tuple(plan.shape[axis] for axis in plan.back)
        if found.shape != shape:
            raise StructureError(f"{self._who}: {what} has shape {found.shape}; the result has {shape}")
        return found if plan.into is None else found.transpose(plan.into)

    def _written(self, out: Any, plan: Plan[Problem]) -> Array:
        found = self._like_result(out, plan, "out")
        if not is_whole(found) or not found.flags.writeable:
            how = "in the memory format of the input" if plan.back else "contiguous"
            raise StructureError(f"{self._who}: out cannot be written to as it is; give a writable array, {how}")
        return found
