"""Random graphs with nested branches and loops, whose results rounding does not touch.

Values are small multiples of powers of two, and sums run over rounded, clamped elements: whatever
order or fusion, results agree bit for bit.
"""

import random

import numpy as np

from tracejit.core.ops import pointwise
from tracejit.core.ops.control import (
    ErrorOf,
    cond_record,
    for_loop_record,
    raise_if_record,
    unwind_loop_record,
    while_loop_record,
)
from tracejit.core.ops.creation import full_of
from tracejit.core.ops.shapes import known_same_shape
from tracejit.core.ops.types import TensorType, bool_, float16, float32, float64, int32, int64
from tracejit.jit.ir.graph import Graph

FLOATS = (float32, float64, float16)


class Maker:
    """One random graph; `inputs(rng)` makes arrays for it."""

    def __init__(self, seed, failing=False):
        self.rng = random.Random(seed)
        self.failing = failing
        self.graph = Graph("random")
        self.size = self.graph.scope.symbol(7, "s0")
        self.graph.symbol_sources["s0"] = ("size", 0, 0)
        self.strided = self.rng.random() < 0.4
        kind = self.rng.choice(FLOATS)
        self.shapes = [(), (3,), (self.size, 3), (self.size,)]
        rows = self.graph.input(TensorType(kind, (self.size, 3)), "rows", not self.strided,
                                (1, self.graph.scope.symbol(9, "s1")) if self.strided else ())
        if self.strided:
            self.graph.symbol_sources["s1"] = ("stride", 0, 1)
        more = [TensorType(kind, (3,)), TensorType(int64, (self.size,)), TensorType(bool_, ()),
                TensorType(self.rng.choice((int32, float32)), ()), TensorType(bool_, (3,))]
        values = [rows, *(self.graph.input(t, "x") for t in more)]
        known = self.steps(self.graph, values, self.rng.randint(3, 6), depth=0)
        made = [v for v in known if v.node is not None] or [rows]
        self.graph.outputs = self.rng.sample(made, min(len(made), 5))
        if self.rng.random() < 0.4:
            same = [v for v in made if v.dtype is kind and known_same_shape(v.shape, rows.shape)]
            self.graph.writes = [(rows, self.rng.choice(same))] if same else []

    def inputs(self, n, seed):
        rng = np.random.default_rng(seed)
        arrays = []
        for v in self.graph.inputs:
            shape = [n if s is self.size else s for s in v.shape]
            if v.contiguous:
                x = np.empty(shape, v.dtype.numpy)
            else:
                x = np.empty((shape[1], n + 2), v.dtype.numpy)[:, :n].T
            x[...] = rng.integers(0, 2, shape) if v.dtype is bool_ else rng.integers(-4, 5, shape)
            arrays.append(x)
        return arrays

    # -- steps -----------------------------------------------------------------------------------
    def steps(self, graph, values, count, depth):
        """`values` and what some random steps make of them."""
        values = list(values)
        for _ in range(count):
            kinds = [self.elementwise] * 5 + [self.summed] * 2
            if depth < 3:
                kinds += [self.cond, self.for_loop, self.while_loop]
            if self.failing:
                kinds.append(self.failure)
            values += self.rng.choice(kinds)(graph, values, depth)
        return values

    def elementwise(self, graph, values, depth):
        x = self.rng.choice(values)
        like = [v for v in values if v.dtype is x.dtype and known_same_shape(v.shape, x.shape)]
        y = self.rng.choice(like)
        if x.dtype is bool_:
            return [self.rng.choice([lambda: x & y, lambda: x | y, lambda: ~x])()]
        z = self.calm(self.rng.choice(like))
        wide = [v for v in values if v.dtype is x.dtype and len(v.shape) < len(x.shape)
                and known_same_shape(v.shape, x.shape[len(x.shape) - len(v.shape):])]
        other = self.calm(self.rng.choice(wide)) if wide else z
        return [self.rng.choice([
            lambda: self.calm(x) + z, lambda: self.calm(x) - other, lambda: x.maximum(y),
            lambda: -x, lambda: x < y, lambda: pointwise.where(x <= y, other + z, -x),
            lambda: pointwise.convert(self.calm(x), self.rng.choice((float32, int64, float64))),
            lambda: x.clone(), lambda: self.calm(x) * 2,
        ])()]

    def calm(self, x):
        """Whole numbers between -8 and 8: exact in every dtype, also after a sum."""
        x = x.clamp(-8, 8)
        return x.floor() if x.dtype.is_floating_point else x

    def summed(self, graph, values, depth):
        found = [v for v in values if v.shape and v.dtype is not bool_]
        if not found:
            return []
        x = self.calm(self.rng.choice(found))
        dim = self.rng.randrange(len(x.shape))
        return [self.rng.choice([lambda: x.sum(dim), lambda: x.sum(dim, keepdim=True) + x,
                                 lambda: x.amax(1) if len(x.shape) == 2 else x.sum()])()]

    def failure(self, graph, values, depth):
        if self.rng.random() < 0.7:
            return []
        return [raise_if_record(self.decision(values), error=ErrorOf(ValueError, ("no",)))]

    # -- regions ---------------------------------------------------------------------------------
    def region(self, graph, types):
        inner = Graph("region", scope=graph.scope)
        return inner, [inner.input(t) for t in types]

    def decision(self, values):
        found = [v for v in values if v.dtype is bool_ and not v.shape]
        if found and self.rng.random() < 0.6:
            return self.rng.choice(found)
        x = self.rng.choice(values)
        x = self.calm(x).sum() if x.dtype is not bool_ else x.sum()
        return x > self.rng.randint(-3, 3)

    def some(self, values, most):
        return [self.rng.choice(values) for _ in range(self.rng.randint(1, most))]

    def of_type(self, values, type):
        """A value of this type, now and then an input."""
        found = [v for v in values if v.dtype is type.dtype
                 and known_same_shape(v.shape, type.shape)]
        return self.rng.choice(found) if found else full_of(
            values[0], type.shape, 1, type.dtype)

    def cond(self, graph, values, depth):
        predicate, captured = self.decision(values), self.some(values, 5)
        types = [v.type for v in self.some(captured, 3)]
        regions = []
        for _ in range(2):
            inner, inputs = self.region(graph, [v.type for v in captured])
            known = self.steps(inner, inputs, self.rng.randint(0, 3), depth + 1)
            inner.outputs = [self.of_type(known, t) for t in types]
            regions.append(inner)
        return list(graph.append(cond_record, (predicate, *captured), {}, regions))

    def for_loop(self, graph, values, depth):
        carried, captured = self.some(values, 3), self.some(values, 3)
        series = [v for v in values if v.shape and v.shape[0] is self.size]
        scanned = self.some(series, 2) if series and self.rng.random() < 0.7 else []
        trip_count = self.size if scanned or self.rng.random() < 0.3 else self.rng.randint(0, 3)
        items = [v.type._replace(shape=v.shape[1:]) for v in scanned]
        types = [v.type for v in carried]
        inner, inputs = self.region(graph, [TensorType(int64, ()), *types, *items,
                                            *(v.type for v in captured)])
        known = self.steps(inner, inputs, self.rng.randint(1, 4), depth + 1)
        inner.outputs = [self.of_type(known, t) for t in types] + self.some(known, 2)
        attributes = {"trip_count": trip_count, "carried": len(carried), "scanned": len(scanned),
                      "reverse": self.rng.random() < 0.4}
        found = graph.append(for_loop_record, (*carried, *scanned, *captured), attributes, [inner])
        return [v for v in found if len(v.shape) <= 2]

    def while_loop(self, graph, values, depth):
        counter = full_of(values[0], (), self.rng.randint(0, 2), int64)
        go, carried = self.decision(values), [counter, *self.some(values, 3)]
        captured = self.some(values, 3)
        types = [v.type for v in carried]
        inner, inputs = self.region(graph, [*types, *(v.type for v in captured)])
        known = self.steps(inner, inputs, self.rng.randint(1, 4), depth + 1)
        again = inputs[0] < self.rng.choice((1, 3, 40))
        if self.rng.random() < 0.4:
            again = again & self.decision(known)
        pushed = self.some(known, 3) if self.rng.random() < 0.6 else []
        inner.outputs = [again, inputs[0] + 1, *(self.of_type(known, t) for t in types[1:]),
                         *pushed]
        found = graph.append(while_loop_record, (go, *carried, *captured),
                             {"carried": len(carried)}, [inner])
        if not pushed:
            return list(found)
        *found, handle = found
        return [*found, *self.unwind(graph, values, found[0], handle, pushed, depth)]

    def unwind(self, graph, values, count, handle, pushed, depth):
        carried, captured = self.some(values, 2), self.some(values, 2)
        types = [v.type for v in carried]
        inner, inputs = self.region(graph, [*types, *(v.type for v in (*pushed, *captured))])
        known = self.steps(inner, inputs, self.rng.randint(1, 3), depth + 1)
        inner.outputs = [self.of_type(known, t) for t in types]
        return graph.append(unwind_loop_record, (count, handle, *carried, *captured),
                            {"carried": len(carried)}, [inner])
