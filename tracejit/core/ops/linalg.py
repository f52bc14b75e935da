"""Products of matrices and vectors.

In: tensors of one floating (or integer) dtype. Out: their product, in that dtype.

Views bring all of PyTorch's products to one record, `matmul`. Its operands are two matrices, or two
stacks of as many matrices; only that one meets a library. `linear` stays one node of its own, so
that its three gradients are products too.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tracejit.core.ops import overriding, shapes
from tracejit.core.ops.array_sums import in_parts
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.composite import composite, widened
from tracejit.core.ops.direct_calls import Direct
from tracejit.core.ops.fitting import fitting
from tracejit.core.ops.older_orders import older_order
from tracejit.core.ops.operators import Operators, method
from tracejit.core.ops.pointwise_record import convert, decisive, device_of, must_be_tensors
from tracejit.core.ops.record import Op, apply
from tracejit.core.ops.types import BOOL, CPP_NAMES, FLOATING, SCALAR_NAMES, TensorType
from tracejit.core.ops.vector_products import is_vector_product, vector_product

# Multiplications above which OpenBLAS has no routine per layout (its `small_kernel_permit`).
_SMALL_PRODUCT = 100 * 100 * 100


_matmul_direct, _linear_direct = (Direct("product", name) for name in ("matmul", "linear"))
_mv_direct, _dot_direct = (Direct("vector", name) for name in ("mv", "dot"))


def _product_type(input: Any, other: Any) -> TensorType:
    a, b = input.shape, other.shape
    shape = (*_batch(a[:-2], b[:-2]), a[-2], b[-1])
    shapes.same(a[-1], b[-2], lambda: _mismatch(a, b))
    return TensorType(input.dtype, shape, device_of((input, other)))


def _batch(a: tuple, b: tuple) -> tuple:
    def wrong() -> str:
        return f"batch sizes differ: {shapes.shape_text(a)} and {shapes.shape_text(b)}"

    if len(a) != len(b):
        raise RuntimeError(wrong())
    return tuple(shapes.same(x, y, wrong) for x, y in zip(a, b))


def _mismatch(a: tuple, b: tuple) -> str:
    if len(a) == 2:
        first, second = ("x".join(str(shapes.hint(s)) for s in shape) for shape in (a, b))
        return f"mat1 and mat2 shapes cannot be multiplied ({first} and {second})"
    expected = [shapes.hint(a[0]), shapes.hint(a[-1])]
    return (f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: "
            f"{shapes.shape_text(b[:2])}.")


def _product_array(xp: Any, input: Any, other: Any) -> Any:
    if input.dtype.itemsize == 2 and input.dtype.kind not in "iu":
        return _in_one_order(xp, input.astype(np.float32), other.astype(np.float32)).astype(
            input.dtype)
    return _in_one_order(xp, input, other)


def _in_one_order(xp: Any, a: Any, b: Any) -> Any:
    """Multiply matrices; shapes alone decide the order of additions, not where the operands lie.

    A program may hold the same values in another layout than eager mode. BLAS copies large matrices
    into an order of its own. But for small ones and for vectors it has routines chosen by strides
    (on some processors only), and one for a matrix times itself. So vectors have an order of ours.
    """
    if xp is not np or a.dtype.kind not in "fc":
        return xp.matmul(a, b)
    if is_vector_product(a, b):
        return vector_product(a, b)
    if np.may_share_memory(a, b):
        b = b.copy()
    return in_parts(_part, a, b)


def _part(a: Any, b: Any) -> Any:
    rows, columns = a.shape[-2], b.shape[-1]
    small = max(rows, 2) * a.shape[-1] * max(columns, 2) <= _SMALL_PRODUCT
    if small or rows == columns == 1:
        a, b = _contiguous(a), _contiguous(b)
    if rows == 1 != columns:  # of complex numbers
        return np.matmul(_doubled(a, -2), b)[..., :1, :].copy()
    if columns == 1 != rows:
        return np.matmul(a, _doubled(b, -1))[..., :1].copy()
    return np.matmul(a, b)


def _contiguous(x: Any) -> Any:
    """Return `x` in row-major order, dimensions of size 1 included."""
    return np.ascontiguousarray(x).ravel().reshape(x.shape)


def _doubled(x: Any, axis: int) -> Any:
    """Make matrices of a stack of vectors: each twice."""
    return np.concatenate((x, x), axis)


def _turned(x: Any) -> Any:
    return x.transpose(-2, -1)


matmul_record = Op(
    "matmul", "extern", ("input", "other"), infer=_product_type, eager=_product_array,
    extern="matmul", node_name="MmBackward0",
    rules={"input": lambda grad, other: product(grad, _turned(other)),
           "other": lambda grad, input: product(_turned(input), grad)})


def product(input: Any, other: Any) -> Any:
    """Apply the record itself to matrices, or equally many of them; dtypes must agree."""
    found = _matmul_direct.direct(input, other)
    if found is not NotImplemented:
        return found
    _same_dtype(input, other)
    return apply(matmul_record, (input, other), {})


def _same_dtype(input: Any, other: Any) -> None:
    if input.dtype is not other.dtype:
        names = (CPP_NAMES[x.dtype.name] for x in (input, other))
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: {} != {}"
                           .format(*names))
    _no_bool(input)


def _no_bool(input: Any) -> None:
    if input.dtype.category == BOOL:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")


def _want_dims(x: Any, ndim: int, text: str) -> None:
    if len(x.shape) != ndim:
        raise RuntimeError(text)


def _is_sparse(x: Any) -> bool:
    return hasattr(type(x), "sparse_product")


def _with_sparse(input: Any, other: Any) -> Any:
    return input.sparse_product(other) if _is_sparse(input) else other.dense_product(input)


@method()
@autocasts(cpu="lower", cuda="lower")
def matmul(input: Any, other: Any) -> Any:
    """Multiply vectors, matrices, or stacks of matrices that broadcast.

    1-d times 1-d: a number; 2-d: (n, k) times (k, m) gives (n, m); 1-d operands lose their
    dimension again; more dimensions are stacks.

    >>> import tracejit
    >>> tracejit.matmul(tracejit.ones(2, 3), tracejit.ones(3)).tolist()
    [3.0, 3.0]

    RuntimeError if the sizes do not fit, if an operand is 0-dim, or if dtypes differ.
    """
    found = _matmul_direct.direct(input, other)
    if found is not NotImplemented:
        return found
    must_be_tensors("matmul", ("input", "other"), (input, other))
    if _is_sparse(input) or _is_sparse(other):
        return _with_sparse(input, other)
    a, b = len(input.shape), len(other.shape)
    if a == 0 or b == 0:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{a}D and {b}D")
    if a == 2 and b == 2:
        return product(input, other)
    if a == 1 and b == 1:
        return dot(input, other)
    if a == 1:
        return _vecmat(input, other) if b == 2 else _alone(
            matmul(input.unsqueeze(0), other).squeeze(-2))
    if b == 1:
        return mv(input, other) if a == 2 else _alone(
            matmul(input, other.unsqueeze(-1)).squeeze(-1))
    if b == 2:
        return _rows_product(input, other)
    return _stacked(input, other)


def _alone(result: Any) -> Any:
    """Make a product in its final shape count as no view: nothing else holds its memory."""
    forget = getattr(type(result), "_forget_view", None)
    return result if forget is None else forget(result)


def _rows_product(input: Any, other: Any) -> Any:
    """Multiply a stack and one matrix: one product of all rows."""
    *lead, k = input.shape
    shapes.same(k, other.shape[0], lambda: _mismatch((shapes.numel(lead), k), tuple(other.shape)))
    rows = input.reshape((shapes.numel(lead), k))
    return _alone(product(rows, other).reshape((*lead, other.shape[1])))


def _stacked(input: Any, other: Any) -> Any:
    batch = shapes.broadcast(tuple(input.shape[:-2]), tuple(other.shape[:-2]))
    left, right = (_stack(x, batch) for x in (input, other))
    result = product(left, right)
    return result if len(batch) == 1 else _alone(
        result.reshape((*batch, *result.shape[-2:])))


def _stack(x: Any, batch: tuple) -> Any:
    """Return `x` as (b, n, m), repeated along the batch dimensions where it must be."""
    rows, columns = x.shape[-2:]
    if not shapes.known_same_shape(tuple(x.shape[:-2]), batch):
        x = x.expand((*batch, rows, columns))
    return x if len(batch) == 1 else x.reshape((shapes.numel(batch), rows, columns))


def _dot_body(input: Any, tensor: Any) -> Any:
    return product(input.unsqueeze(0), tensor.unsqueeze(1)).reshape(())


def _mv_body(input: Any, vec: Any) -> Any:
    return product(input, vec.unsqueeze(1)).squeeze(1)


def _vecmat_body(input: Any, mat2: Any) -> Any:
    return product(input.unsqueeze(0), mat2).squeeze(0)


def _dot_array(xp: Any, input: Any, tensor: Any) -> Any:
    return _with_vector(xp, input[None, :], tensor[:, None], ())


def _mv_array(xp: Any, input: Any, vec: Any) -> Any:
    return _with_vector(xp, input, vec[:, None], input.shape[:1])


def _vecmat_array(xp: Any, input: Any, mat2: Any) -> Any:
    return _with_vector(xp, input[None, :], mat2, mat2.shape[1:])


def _with_vector(xp: Any, left: Any, right: Any, shape: tuple) -> Any:
    """Return the product of matrices, of which one has one row or one column, in a shape."""
    if xp is np and left.dtype.kind == "f" and left.dtype.itemsize > 2:
        return vector_product(left, right, shape)
    return _product_array(xp, left, right).reshape(shape)


dot_record = composite(
    "dot", ("input", "tensor"), _dot_body, eager=_dot_array,
    infer=lambda input, tensor: TensorType(input.dtype, (), device_of((input, tensor))),
    input=lambda grad, tensor: grad * tensor,
    tensor=lambda grad, input: grad * input)

mv_record = composite(
    "mv", ("input", "vec"), _mv_body, eager=_mv_array,
    infer=lambda input, vec: TensorType(input.dtype, (input.shape[0],), device_of((input, vec))),
    input=lambda grad, vec: grad.unsqueeze(1) * vec.unsqueeze(0),
    vec=lambda grad, input: matmul(_turned(input), grad))


def _vecmat_type(input: Any, mat2: Any) -> TensorType:
    (k,), (rows, columns) = input.shape, mat2.shape
    shapes.same(k, rows, lambda: _mismatch((1, k), (rows, columns)))
    return TensorType(input.dtype, (columns,), device_of((input, mat2)))


# Products of one term each, which count as a product of matrices: as PyTorch's gradient is one.
outer_record = composite(
    "outer", ("input", "vec2"), lambda input, vec2: input.unsqueeze(1) * vec2.unsqueeze(0),
    eager=lambda xp, input, vec2: input[:, None] * vec2[None, :],
    infer=lambda input, vec2: TensorType(
        input.dtype, (input.shape[0], vec2.shape[0]), device_of((input, vec2))),
    node_name="MmBackward0",
    input=lambda grad, vec2: matmul(grad, vec2),
    vec2=lambda grad, input: _vecmat(input, grad))

vecmat_record = composite(
    "vecmat", ("input", "mat2"), _vecmat_body, eager=_vecmat_array, infer=_vecmat_type,
    node_name="SqueezeBackward4",
    input=lambda grad, mat2: _vecmat(grad, _turned(mat2)),
    mat2=lambda grad, input: apply(outer_record, (input, grad), {}))


def _vecmat(input: Any, mat2: Any) -> Any:
    """Multiply a vector (n,) and a matrix (n, k) to (k,)."""
    _same_dtype(input, mat2)
    return apply(vecmat_record, (input, mat2), {})


@method()
@autocasts(cpu="lower", cuda="lower")
def mm(input: Any, mat2: Any) -> Any:
    """Multiply matrices (n, k) and (k, m) of one dtype to (n, m); no broadcasting.

    >>> import tracejit
    >>> tracejit.mm(tracejit.eye(2), tracejit.ones(2, 3)).shape
    tracejit.Size([2, 3])
    """
    must_be_tensors("mm", ("mat2",), (mat2,))
    if _is_sparse(input) or _is_sparse(mat2):
        return _with_sparse(input, mat2)
    _want_dims(input, 2, "self must be a matrix")
    _want_dims(mat2, 2, "mat2 must be a matrix")
    return product(input, mat2)


@method()
@autocasts(cpu="lower", cuda="lower")
def bmm(input: Any, mat2: Any) -> Any:
    """Multiply batches of matrices (b, n, k) and (b, k, m) to (b, n, m); no broadcasting.

    >>> import tracejit
    >>> tracejit.bmm(tracejit.ones(5, 2, 3), tracejit.ones(5, 3, 4)).shape
    tracejit.Size([5, 2, 4])
    """
    must_be_tensors("bmm", ("mat2",), (mat2,))
    _want_dims(input, 3, "batch1 must be a 3D tensor")
    _want_dims(mat2, 3, "batch2 must be a 3D tensor")
    if not shapes.equal(input.shape[0], mat2.shape[0]):
        raise RuntimeError(_mismatch(tuple(input.shape), tuple(mat2.shape)))
    return product(input, mat2)


@method()
@autocasts(cuda="lower")
def mv(input: Any, vec: Any) -> Any:
    """Multiply a matrix (n, k) and a vector (k,) to (n,).

    >>> import tracejit
    >>> tracejit.mv(tracejit.eye(2), tracejit.tensor([1., 2.]))
    tensor([1., 2.])
    """
    found = _mv_direct.direct(input, vec)
    if found is not NotImplemented:
        return found
    must_be_tensors("mv", ("vec",), (vec,))
    if _is_sparse(input):
        return input.sparse_product(vec)
    if len(input.shape) != 2 or len(vec.shape) != 1:
        raise RuntimeError("vector + matrix @ vector expected, got "
                           f"{len(vec.shape)}, {len(input.shape)}, {len(vec.shape)}")
    shapes.same(input.shape[1], vec.shape[0],
                f"size mismatch, got input ({shapes.hint(input.shape[0])}), mat "
                f"({shapes.hint(input.shape[0])}x{shapes.hint(input.shape[1])}), vec "
                f"({shapes.hint(vec.shape[0])})")
    _same_dtype(input, vec)
    return apply(mv_record, (input, vec), {})


@method()
@autocasts(cuda="widest")
def dot(input: Any, tensor: Any) -> Any:
    """Return the sum of products of two vectors (n,), a 0-dim tensor.

    >>> import tracejit
    >>> tracejit.dot(tracejit.tensor([1., 2.]), tracejit.tensor([3., 4.]))
    tensor(11.)
    """
    found = _dot_direct.direct(input, tensor)
    if found is not NotImplemented:
        return found
    must_be_tensors("dot", ("tensor",), (tensor,))
    if len(input.shape) != 1 or len(tensor.shape) != 1:
        raise RuntimeError(f"1D tensors expected, but got {len(input.shape)}D and "
                           f"{len(tensor.shape)}D tensors")
    n, m = shapes.hint(input.shape[0]), shapes.hint(tensor.shape[0])
    shapes.same(input.shape[0], tensor.shape[0],
                f"inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same "
                f"number of elements, but got {n} and {m} elements respectively")
    _same_dtype(input, tensor)
    return apply(dot_record, (input, tensor), {})


@method()
def outer(input: Any, vec2: Any) -> Any:
    """Multiply each element of `input` by each of `vec2`: (n,) and (m,) give (n, m).

    >>> import tracejit
    >>> tracejit.outer(tracejit.tensor([1, 2]), tracejit.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    must_be_tensors("outer", ("vec2",), (vec2,))
    for x, name in ((input, "input"), (vec2, "vec2")):
        _want_dims(x, 1, f"outer: Expected 1-D argument {name}, but got {len(x.shape)}-D")
    return input.unsqueeze(1) * vec2.unsqueeze(0)


@method()
@autocasts(cpu="lower", cuda="lower")
@older_order("beta", "alpha")
def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * input + alpha * (mat1 @ mat2), (n, m); `input` broadcasts to it.

    >>> import tracejit
    >>> tracejit.addmm(tracejit.ones(2), tracejit.eye(2), tracejit.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    if _is_sparse(mat1):
        return input * beta + mat1.sparse_product(mat2) * alpha
    _want_dims(mat1, 2, f"mat1 must be a matrix, got {len(mat1.shape)}-D tensor")
    _want_dims(mat2, 2, f"mat2 must be a matrix, got {len(mat2.shape)}-D tensor")
    _same_dtype(mat1, mat2)
    if input.dtype is not mat2.dtype:
        raise RuntimeError("self and mat2 must have the same dtype, but got "
                           f"{SCALAR_NAMES[input.dtype.name]} and {SCALAR_NAMES[mat2.dtype.name]}")
    return sum_with_product(addmm_record, input, mat1, mat2, beta, alpha)


@method()
@autocasts(cpu="lower", cuda="lower")
@older_order("beta", "alpha")
def baddbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * input + alpha * bmm(batch1, batch2), (b, n, m); `input` broadcasts to it.

    >>> import tracejit
    >>> tracejit.baddbmm(tracejit.ones(1), tracejit.ones(5, 2, 3), tracejit.ones(5, 3, 4)).shape
    tracejit.Size([5, 2, 4])
    """
    _want_dims(batch1, 3, "batch1 must be a 3D tensor")
    _want_dims(batch2, 3, "batch2 must be a 3D tensor")
    _same_dtype(batch1, batch2)
    if input.dtype is not batch1.dtype:
        kinds = (CPP_NAMES[x.dtype.name] for x in (input, batch1, batch2))
        raise RuntimeError("Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}"
                           .format(*kinds))
    return sum_with_product(baddbmm_record, input, batch1, batch2, beta, alpha)


def sum_with_product(record: Op, input: Any, left: Any, right: Any, beta: Any,
                     alpha: Any) -> Any:
    """Return beta * input + alpha * (left @ right) by `record`."""
    beta, alpha = (fitting(x, left.dtype, as_computed=True) for x in (beta, alpha))
    if left.dtype.category < FLOATING:
        beta, alpha = (int(x) if isinstance(x, float) else x for x in (beta, alpha))
    beta, alpha = decisive(beta, 0, 1), decisive(alpha, 1)
    return apply(record, (convert(input, left.dtype), left, right, beta, alpha), {})


def _is(number: Any, value: int) -> bool:
    return type(number) in (int, float) and number == value


def _sum_body(input: Any, left: Any, right: Any, beta: Any, alpha: Any) -> Any:
    kind = left.dtype
    result = product(widened(left), widened(right))
    shapes.check_expands(input.shape, result.shape)
    if not _is(alpha, 1):
        result = result * alpha
    if not _is(beta, 0):
        input = widened(input)
        result = result + (input if _is(beta, 1) else input * beta)
    return convert(result, kind)


def _sum_type(input: Any, left: Any, right: Any, beta: Any, alpha: Any) -> TensorType:
    kind = _product_type(left, right)
    shapes.check_expands(input.shape, kind.shape)
    return kind


def _times(grad: Any, factor: Any) -> Any:
    return grad if _is(factor, 1) else grad * factor


_SUM_RULES: dict[str, Any] = {
    "input": lambda grad, beta: _times(grad, beta),
    "left": lambda grad, right, alpha: _times(product(grad, _turned(right)), alpha),
    "right": lambda grad, left, alpha: _times(product(_turned(left), grad), alpha),
}
_SUM_OPERANDS = ("input", "left", "right", "beta", "alpha")
addmm_record = composite("addmm", _SUM_OPERANDS, _sum_body, infer=_sum_type, **_SUM_RULES)
baddbmm_record = composite("baddbmm", _SUM_OPERANDS, _sum_body, infer=_sum_type, **_SUM_RULES)


# -- linear ----------------------------------------------------------------------------------------
def _linear_type(input: Any, weight: Any, bias: Any) -> TensorType:
    *lead, k = input.shape
    shapes.same(k, weight.shape[1],
                _mismatch((shapes.numel(lead), k), tuple(reversed(weight.shape))))
    result = (*lead, weight.shape[0])
    if bias is not None:
        shapes.check_expands(bias.shape, result)
    return TensorType(input.dtype, result, device_of((input, weight)))


def _linear_body(input: Any, weight: Any, bias: Any) -> Any:
    if bias is None:
        return matmul(input, weight.transpose(0, 1))
    result = matmul(widened(input), widened(weight).transpose(0, 1)) + widened(bias)
    return convert(result, input.dtype)


def _linear_array(xp: Any, input: Any, weight: Any, bias: Any) -> Any:
    kind = input.dtype
    if kind.itemsize == 2 and bias is not None:
        input, weight, bias = (x.astype(np.float32) for x in (input, weight, bias))
    rows = input.reshape(math.prod(input.shape[:-1]), input.shape[-1])
    result = _product_array(xp, rows, weight.T).reshape(*input.shape[:-1], weight.shape[0])
    if bias is None:
        return result
    return xp.add(result, bias, out=result).astype(kind, copy=False)


def _linear_weight(grad: Any, input: Any) -> Any:
    return product(_rows(grad).transpose(0, 1), _rows(input))


def _rows(x: Any) -> Any:
    """Join all leading dimensions."""
    *lead, k = x.shape
    return x if len(lead) == 1 else x.reshape((shapes.numel(lead), k))


linear_record = Op(
    "linear", "composite", ("input", "weight", "bias"), infer=_linear_type, eager=_linear_array,
    body=_linear_body, node_name="AddmmBackward0",
    rules={"input": lambda grad, weight: matmul(grad, weight),
           "weight": _linear_weight,
           "bias": lambda grad: grad})


@autocasts(cpu="lower", cuda="lower")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return input @ weight.T + bias, for `input` (..., k), `weight` (n, k) and `bias` (n,) or
    None.

    >>> import tracejit
    >>> x, w = tracejit.ones(2, 3), tracejit.ones(4, 3)
    >>> tracejit.nn.functional.linear(x, w).shape
    tracejit.Size([2, 4])

    RuntimeError if the sizes do not fit or dtypes differ.
    """
    found = _linear_direct.direct(input, weight, bias)
    if found is not NotImplemented:
        return found
    if not len(input.shape) or not len(weight.shape):
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are "
                           f"{len(input.shape)}D and {len(weight.shape)}D")
    if len(weight.shape) == 1:
        result = matmul(input, weight)
        return result if bias is None else result + bias
    if len(weight.shape) > 2:
        raise RuntimeError("t() expects a tensor with <= 2 dimensions, but self is "
                           f"{len(weight.shape)}D")
    if len(input.shape) == 1:
        return linear(input.unsqueeze(0), weight, bias).squeeze(0)
    for x in (weight, bias):
        if x is not None and x.dtype is not input.dtype:
            names = (CPP_NAMES[y.dtype.name] for y in (input, x))
            raise RuntimeError("mat1 and mat2 must have the same dtype, but got {} and {}"
                               .format(*(n.capitalize() for n in names)))
    _no_bool(input)
    return apply(linear_record, (input, weight, bias), {})


def _matmul_operator(self: Any, other: Any) -> Any:
    if isinstance(other, Operators):
        return matmul(self, other)
    return overriding.by_operand(_matmul_operator, self, other)


def _reflected_matmul_operator(self: Any, other: Any) -> Any:
    if isinstance(other, Operators):
        return matmul(other, self)
    return overriding.by_operand(_reflected_matmul_operator, self, other)


method("__matmul__")(_matmul_operator)
method("__rmatmul__")(_reflected_matmul_operator)
