"""Dispatch of ops on tensors: record them, or compute with NumPy or CuPy, then extend the tape.

In: an op, its operands and attributes, from `ops.record.apply`. Out: tensors. Every op passes here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tracejit.core.eager import meta, view_layouts
from tracejit.core.eager.quiet import quietly
from tracejit.core.eager.recording import active
from tracejit.core.eager.result_sizes import check_counts, check_memory, out_of_memory
from tracejit.core.eager.state import TensorState, laid_out, make, of_array, of_result, strides_of
from tracejit.core.eager.tape import attach, attach_view, refresh
from tracejit.core.eager.transfer import TO_DEVICE
from tracejit.core.eager.views import AliasFamily, family_of
from tracejit.core.memory import CPU, address, array_module
from tracejit.core.ops.record import Elsewhere, Op, install_default
from tracejit.core.ops.types import TensorType

INFERENCE = AliasFamily(inference=True)
# Bytes of an operand from which on a kernel may compute an elementwise op whose bits are NumPy's.
LARGE = 1 << 17
_types: dict[tuple, TensorType] = {}
_TYPES_KEPT = 4096
_library: list[Callable[[Op, tuple, dict], Any]] = []
# Kinds whose results may be far larger than their operands: memory is checked first.
_MAY_GROW = frozenset({"creation", "movement", "extern", "random"})
_QUIET = frozenset({"movement", "creation"})  # kinds whose arithmetic cannot overflow


def dispatch(op: Op, operands: tuple, attributes: dict) -> Any:
    """Run one op: `Tensor.dispatch`, also for ops without tensor operands."""
    tracer = active.tracer
    if not op.rules and op.fused and active.grad_enabled and _requires_grad(operands):
        return op.body(*operands, **attributes)  # type: ignore[misc]
    run = _run if tracer is None else tracer.run
    try:
        result = run(op, operands, attributes)
    except Elsewhere as other:
        return other.run(op, operands, attributes)
    views = op.views and is_view(result, operands[0])
    if active.inference and (not views or _made_in_inference(operands[0])):
        for t in result if type(result) is tuple else (result,):
            t._view = INFERENCE
        return result
    if op.rules and (active.grad_enabled or views):
        needs = False
        for x in operands:
            if isinstance(x, TensorState):
                if x._view is not None and refresh(x) or x._requires_grad:
                    needs = True  # no break: every view among the operands is refreshed
        if needs and active.grad_enabled:
            attach(op, operands, result if type(result) is tuple else (result,), attributes)
    if views:
        attach_view(op, operands[0], operands[1:], attributes, result)
    if tracer is not None:
        tracer.ran(op, operands, attributes, result)
    return result


def _is_large(operands: tuple) -> bool:
    for x in operands:
        if isinstance(x, TensorState) and x._storage is not None and x._storage.nbytes >= LARGE:
            return True
    return False


def _requires_grad(operands: tuple) -> bool:
    for x in operands:
        if isinstance(x, TensorState):
            if x._view is not None:
                refresh(x)
            if x._requires_grad:
                return True
    return False


def _made_in_inference(x: TensorState) -> bool:
    return x._view is not None and family_of(x).inference


def is_view(result: Any, source: TensorState) -> bool:
    """Return True if the result of a view op shares its operand's memory (a reshape may copy)."""
    if result._storage is None:
        return bool(result._traced.views)
    return result._storage is source._storage


def install_library(run: Callable[[Op, tuple, dict], Any]) -> None:
    """Set the function that computes ops by kernels (`Op.library`, `Op.fused`); it returns None for
    those that it leaves."""
    _library[:] = [run]


def by_library(op: Op, arrays: tuple, attributes: dict) -> Any:
    """Run a kernel of eager mode on NumPy arrays. Return None if NumPy has to compute the
    result."""
    given = [of_array(np.asarray(x, order="C")) if isinstance(x, (np.ndarray, np.generic)) else x
             for x in arrays]
    for run in _library:
        found = run(op, tuple(given), attributes)
        if found is not None:
            return tuple([t.array for t in found]) if type(found) is tuple else found.array
    return None


def _run(op: Op, operands: tuple, attributes: dict) -> Any:
    """Compute an op with the array library of the operands' device."""
    if op.views and (found := view_layouts.seen(op, operands[0], attributes)) is not None:
        return found
    if op.by_kernel or op.exact and _is_large(operands):
        for run in _library:
            computed = run(op, operands, attributes)
            if computed is not None:
                return computed
    if op.eager is None:
        return _run_body(op, operands, attributes)
    types = _infer(op, operands, attributes)
    arrays: list[Any] = []
    device = None
    for x in operands:
        if isinstance(x, TensorState):
            arrays.append(x._array if x._array is not None else laid_out(x))
            if x._device is not device:
                device = x._device if device is None else _common_device(operands)
        elif type(x) is tuple:
            arrays.append(tuple(laid_out(y) if isinstance(y, TensorState) else y for y in x))
        else:
            arrays.append(x)
    if device is None:
        device = (types if type(types) is TensorType else types[0]).device or CPU
    if op.kind in _MAY_GROW and not op.views and device is CPU:
        check_memory(types)
    try:
        if device is CPU or device.type == "cpu":
            found = _compute(np, op, arrays, attributes)
        elif device.type == "meta":
            return _without_values(op, operands, arrays, attributes, types)
        else:
            arrays = [_on_device(a, device) for a in arrays]
            found = _compute(array_module(device), op, arrays, attributes)
    except (ValueError, MemoryError) as error:  # too many elements, in the library's words
        check_counts(op, types)
        if isinstance(error, MemoryError) and not isinstance(error, RuntimeError):
            raise out_of_memory(types, error) from None
        raise
    if op is TO_DEVICE:
        device = attributes["device"]
        if device.type == "meta":
            return meta.tensors_of(op, types)
    if type(types) is TensorType:
        if op.views:
            return _viewed(found, types, operands[0], device, op, attributes)
        return _owned(found, types, arrays, device)
    return tuple([_owned(a, t, arrays, device) for a, t in zip(found, types)])


def _without_values(op: Op, operands: tuple, arrays: list, attributes: dict, types: Any) -> Any:
    """Make results on the device "meta", which have only types and layouts."""
    seen = meta.viewed(op, arrays, attributes) if op.views else None
    if seen is not None:
        return _viewed(seen, types, operands[0], operands[0]._device, op, attributes)
    return meta.tensors_of(op, types)


def _compute(xp: Any, op: Op, arrays: list, attributes: dict) -> Any:
    if op.kind in _QUIET:
        return op.eager(xp, *arrays, **attributes)  # type: ignore[misc]
    return quietly(op.eager, xp, arrays, attributes)  # type: ignore[arg-type]


def _run_body(op: Op, operands: tuple, attributes: dict) -> Any:
    """Run the body of a composite that has no eager form, off the tape: the composite has its own
    rules."""
    before = active.grad_enabled  # not `no_grad`: this runs for every such op
    active.grad_enabled = False
    try:
        result = op.body(*operands, **attributes)  # type: ignore[misc]
    finally:
        active.grad_enabled = before
    if type(result) is tuple:
        return tuple([_unshared(x, operands) for x in result])
    return _unshared(result, operands)


def _unshared(result: Any, operands: tuple) -> Any:
    """Return a result as a tensor of its own: a body may return an operand, or a view of one."""
    if result._view is None and all(result is not x for x in operands):
        return result
    if meta.is_meta(result):
        return meta.tensor_of(TensorType(result._dtype, result._shape, result._device))
    return of_result(result.array.copy(), result._dtype, result._device)


def _infer(op: Op, operands: tuple, attributes: dict) -> Any:
    """Infer the results' types. Those of pointwise ops without attributes depend on operand types
    alone and are cached."""
    if op.kind != "pointwise" or attributes:
        return op.infer(*operands, **attributes)
    key: tuple = (op,)
    for x in operands:
        if isinstance(x, TensorState):
            key += (x._shape, x._dtype, None if x._device is CPU else x._device)
        else:
            key += (type(x),)
    found = _types.get(key)
    if found is None:
        found = op.infer(*operands)
        if len(_types) >= _TYPES_KEPT:
            _types.clear()
        _types[key] = found
    return found


def _owned(array: Any, kind: TensorType, arrays: list, device: Any) -> Any:
    """Return an array as a contiguous tensor that shares memory with no operand."""
    if type(array) is not np.ndarray:
        if device.type == "cpu":
            array = np.asarray(array)
        elif type(array).__module__.partition(".")[0] != "cupy":
            array = array_module(device).asarray(array)
    wanted = kind.dtype.numpy
    if array.dtype is not wanted and array.dtype != wanted:
        array = array.astype(wanted)
    elif (array.base is not None or _given(array, arrays)) and _shares(array, arrays):
        array = array.copy()
    if not array.flags.c_contiguous:
        array = array.copy()
    return of_result(array, kind.dtype, device)


def _given(array: Any, arrays: list) -> bool:
    for a in arrays:
        if a is array:
            return True
    return False


def _shares(array: Any, arrays: list) -> bool:
    operands = [a for a in arrays if hasattr(a, "__array_interface__") or hasattr(a, "data")]
    if type(array) is not np.ndarray:
        return True  # CuPy: no cheap test; only views and operands come here
    return any(type(a) is np.ndarray and np.may_share_memory(array, a) for a in operands)


def _viewed(array: Any, kind: TensorType, source: TensorState, device: Any, op: Op,
            attributes: dict) -> Any:
    """Make a view op's result over the operand's storage, or over its own if the library had to
    copy."""
    storage = source._storage
    assert storage is not None
    if array.size == 0:
        offset = source._offset + _skipped(op, attributes, source)  # NumPy does not say
    else:
        distance = address(array) - storage.ptr
        if not 0 <= distance < storage.nbytes:
            return _owned(array, kind, [], device)
        offset = distance // array.itemsize
    itemsize = array.itemsize
    strides = None if array.flags.c_contiguous else tuple([s // itemsize for s in array.strides])
    t = make(storage, offset, array.shape, strides, kind.dtype, device)
    if device.type != "meta":
        t._array = array
    return t


def _skipped(op: Op, attributes: dict, source: TensorState) -> int:
    """Return by how many elements an empty view starts after its source."""
    start = attributes.get({"slice": "start", "select": "index"}.get(op.name))
    return 0 if start is None else start * strides_of(source)[attributes["dim"]]


def replace_run(run: Callable[..., Any]) -> Callable[..., Any]:
    """Set the function that computes ops, `run(op, operands, attributes)`; return the one
    before."""
    global _run
    before, _run = _run, run
    for watch in _watches:
        watch(run is not _RUN)
    return before


def is_replaced() -> bool:
    """Return True if another function than the dispatcher's own runs ops."""
    return _run is not _RUN


_RUN = _run
_watches: list[Callable[[bool], None]] = []


def install_watch(watch: Callable[[bool], None]) -> None:
    """Set a function that is told if another function than the dispatcher's own runs ops."""
    _watches.append(watch)
    watch(_run is not _RUN)


def _common_device(operands: tuple) -> Any:
    """Return the one device of the operands. 0-dim CPU tensors combine with any other device."""
    tensors = [x for x in operands if isinstance(x, TensorState)]
    devices = list(dict.fromkeys(x._device for x in tensors))
    strong = list(dict.fromkeys(x._device for x in tensors if x._shape or x._device.type != "cpu"))
    if len(devices) > 1 and len(strong) > 1:
        raise RuntimeError("Expected all tensors to be on the same device, but found at least two "
                           "devices, "
                           f"{strong[0]} and {strong[1]}!")
    return strong[0] if strong else devices[0]


def _on_device(array: Any, device: Any) -> Any:
    if isinstance(array, np.ndarray):
        return array_module(device).asarray(array)
    return array


install_default(dispatch)
