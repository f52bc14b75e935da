"""Products of tensors along chosen dimensions: cross, kron, tensordot, and sums with products.

In: tensors. Out: tensors. Called by users. All are written in ops; views bring sums of products to
the record `matmul`.
"""

from __future__ import annotations

from typing import Any

from tracejit.core.ops import shapes
from tracejit.core.ops.autocast import autocasts
from tracejit.core.ops.fitting import HALVES, as_written
from tracejit.core.ops.joining import cat
from tracejit.core.ops.linalg import (
    addmm,
    addmm_record,
    dot,
    outer,
    product,
    sum_with_product,
)
from tracejit.core.ops.linalg_checks import must_agree, title
from tracejit.core.ops.linalg_solvers import inv, solve
from tracejit.core.ops.movement import broadcast_to
from tracejit.core.ops.older_orders import older_order
from tracejit.core.ops.operators import method
from tracejit.core.ops.pointwise_complex import conj
from tracejit.core.ops.pointwise_record import (
    constant,
    convert,
    decisive,
    is_number,
    is_tensor,
    must_be_tensors,
)
from tracejit.core.ops.rearranging import roll
from tracejit.core.ops.scan import cumprod
from tracejit.core.ops.shapes import as_size
from tracejit.core.ops.slicing import diagonal as diagonal_of
from tracejit.core.ops.types import BOOL, COMPLEX, FLOATING, bool_, result_type


# -- vectors ---------------------------------------------------------------------------------------
@method()
@autocasts(cpu="lower", cuda="lower")
def inner(input: Any, other: Any) -> Any:
    """Sum products along the last dimension of both; a product where one is 0-dim.

    >>> import tracejit
    >>> tracejit.inner(tracejit.ones(2, 3), tracejit.ones(4, 3)).shape
    tracejit.Size([2, 4])
    """
    must_be_tensors("inner", ("other",), (other,))
    if not input.shape or not other.shape:
        return input * other
    *rows, k = input.shape
    *columns, n = other.shape
    shapes.same(k, n, "inner() the last dimension must match on both input tensors but got shapes "
                      f"{shapes.shape_text(input.shape)} and {shapes.shape_text(other.shape)}")
    left = input.reshape((shapes.numel(rows), k))
    right = other.reshape((shapes.numel(columns), k))
    return product(left, right.transpose(0, 1)).reshape((*rows, *columns))


def cross_along(input: Any, other: Any, *, dim: int = -1) -> Any:
    """Return the cross product of vectors of size 3 along `dim`; the other dimensions broadcast.

    >>> import tracejit
    >>> x, y, _ = tracejit.eye(3)
    >>> tracejit.linalg.cross(x, y).tolist()
    [0.0, 0.0, 1.0]

    RuntimeError where sizes, numbers of dimensions or dtypes do not fit.
    """
    if len(input.shape) != len(other.shape):
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    k = shapes.normalize_dim(dim, len(input.shape))
    if not (shapes.equal(input.shape[k], 3) and shapes.equal(other.shape[k], 3)):
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got "
            f"{shapes.hint(input.shape[k])} and {shapes.hint(other.shape[k])}"
        )
    if input.dtype is bool_:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"expected scalar type {title(input)} but found {title(other)}")
    shape = shapes.broadcast(input.shape, other.shape)
    a, b = (x if shapes.known_same_shape(x.shape, shape) else broadcast_to(x, shape)
            for x in (input, other))  # fmt: skip
    # Element i is a[i + 1] b[i + 2] - a[i + 2] b[i + 1], counted modulo 3.
    return roll(a, -1, k) * roll(b, 1, k) - roll(a, 1, k) * roll(b, -1, k)


@method()
@autocasts(cuda="widest")
def cross(input: Any, other: Any, dim: int | None = None) -> Any:
    """Call `linalg.cross`: vectors of 3; without `dim`, along the first dimension of size 3.

    RuntimeError where no dimension has size 3.

    >>> import tracejit
    >>> tracejit.cross(tracejit.tensor([1, 0, 0]), tracejit.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    must_be_tensors("cross", ("other",), (other,))
    if dim is None:
        sizes = [k for k, size in enumerate(input.shape) if shapes.equal(size, 3)]
        if not sizes:
            raise RuntimeError("no dimension of size 3 in input")
        dim = sizes[0]
    return cross_along(input, other, dim=dim)


@autocasts(cpu="lower", cuda="lower")
def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """Sum products along `dim`, of the conjugate of `x`; the other dimensions broadcast.

    >>> import tracejit
    >>> tracejit.linalg.vecdot(tracejit.ones(2, 3), tracejit.ones(3)).tolist()
    [3.0, 3.0]
    """
    name = "linalg.vecdot"
    if x.dtype.category < FLOATING:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {title(x)}"
        )
    must_agree(name, x, y, ("x", "y"))
    x = _conjugated(x)
    if len(x.shape) == len(y.shape) == 1:
        return dot(x, y)
    return (x * y).sum(dim)


def _conjugated(x: Any) -> Any:
    return conj(x) if x.dtype.category == COMPLEX else x


@method()
@autocasts(cuda="widest")
def vdot(input: Any, other: Any) -> Any:
    """Return `dot` of the conjugate of `input` and `other`, two vectors (n,): a 0-dim tensor.

    >>> import tracejit
    >>> tracejit.vdot(tracejit.tensor([1j]), tracejit.tensor([1j]))
    tensor(1.+0.j)
    """
    must_be_tensors("vdot", ("other",), (other,))
    _same_vectors(input, other)
    return dot(_conjugated(input), other)


def _same_vectors(a: Any, b: Any) -> None:
    if a.dtype is not b.dtype and len(a.shape) == len(b.shape) == 1:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {title(a)} and {title(b)}"
        )


@method()
def ger(input: Any, vec2: Any) -> Any:
    """Call `outer`: vectors (n,) and (m,) give (n, m).

    >>> import tracejit
    >>> tracejit.ger(tracejit.tensor([1, 2]), tracejit.tensor([3, 4]))
    tensor([[3, 4],
            [6, 8]])
    """
    must_be_tensors("ger", ("vec2",), (vec2,))
    if len(input.shape) != 1:
        raise RuntimeError(
            f"outer: Expected 1-D argument self, but got {len(input.shape)}-D"
        )
    return outer(input, vec2)


def vander(x: Any, *, N: int | None = None) -> Any:
    """Return the powers 0 to N - 1 of each element as a new dimension; N None: `x.shape[-1]`.

    >>> import tracejit
    >>> tracejit.linalg.vander(tracejit.tensor([2, 3]), N=3).tolist()
    [[1, 2, 4], [1, 3, 9]]
    """
    if not x.shape and N is None:
        raise RuntimeError("N must be greater than 1.")
    x = x if x.shape else x.unsqueeze(0)
    count = x.shape[-1] if N is None else as_size(N)
    if N is not None and count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x.shape, count - 1))
    return cumprod(cat((x.new_ones((*x.shape, 1)), powers), -1), -1)


# -- tensors ---------------------------------------------------------------------------------------
@method()
def kron(input: Any, other: Any) -> Any:
    """Return the Kronecker product: for each element of `input` all of `other` times it.

    >>> import tracejit
    >>> tracejit.kron(tracejit.tensor([1, 10]), tracejit.tensor([1, 2])).tolist()
    [1, 2, 10, 20]
    """
    must_be_tensors("kron", ("other",), (other,))
    ndim = max(len(input.shape), len(other.shape))
    left, right = ((1,) * (ndim - len(x.shape)) + tuple(x.shape) for x in (input, other))
    a = input.reshape(tuple(n for size in left for n in (size, 1)))
    b = other.reshape(tuple(n for size in right for n in (1, size)))
    return (a * b).reshape(tuple(n * m for n, m in zip(left, right)))


def _contracted(a: Any, b: Any, dims: Any) -> tuple[list[int], list[int]]:
    dims = constant(dims)
    if is_tensor(dims):
        dims = dims.tolist()
    if not isinstance(dims, (tuple, list)):
        count = as_size(dims)
        if count < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={count}")
        if count > min(len(a.shape), len(b.shape)):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={count}")
        return list(range(len(a.shape) - count, len(a.shape))), list(range(count))
    left, right = (list(d) if isinstance(d, (tuple, list)) else [d] for d in dims)
    if len(left) != len(right):
        raise RuntimeError("both dimension lists should have same length")
    return left, right


@autocasts(cpu="lower", cuda="widest")
def tensordot(a: Any, b: Any, dims: Any = 2, *, axes: Any = None) -> Any:
    """Sum products over dimensions of both; keep the other dimensions of `a`, then those of `b`.

    dims  how many: the last of `a` and the first of `b`; or two lists of dimensions
    axes  the same by NumPy's name: libraries for any kind of array call it so

    >>> import tracejit
    >>> tracejit.tensordot(tracejit.ones(2, 3), tracejit.ones(3, 4), 1).shape
    tracejit.Size([2, 4])

    RuntimeError where sizes, lists or dtypes do not fit.
    """
    dims = dims if axes is None else axes
    given = _contracted(a, b, dims)
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    left, right = ([shapes.normalize_dim(d, len(x.shape)) for d in each]
                   for x, each in zip((a, b), given))  # fmt: skip
    for each, x in ((left, a), (right, b)):
        shapes.normalize_dims(tuple(each) or (), len(x.shape))
    for k, (i, j) in enumerate(zip(left, right)):
        n, m = a.shape[i], b.shape[j]
        if shapes.equal(n, m):
            continue
        if shapes.equal(n, 1):  # broadcast: the one element meets the sum of the others
            b = b.sum(j, True, dtype=b.dtype)
        elif shapes.equal(m, 1):
            a = a.sum(i, True, dtype=a.dtype)
        else:
            shown = [d if isinstance(dims, (tuple, list)) else d - k for d in (i, j)]
            if not isinstance(dims, (tuple, list)):
                shown = [i - len(a.shape), j]
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {shapes.hint(n)} in dim "
                f"{shown[0]} and second has size {shapes.hint(m)} in dim {shown[1]}"
            )
    rows = [d for d in range(len(a.shape)) if d not in left]
    columns = [d for d in range(len(b.shape)) if d not in right]
    outside = (*(a.shape[d] for d in rows), *(b.shape[d] for d in columns))
    inside = shapes.numel(a.shape[d] for d in left)
    first = a.permute((*rows, *left)).reshape((shapes.numel(a.shape[d] for d in rows), inside))
    second = b.permute((*right, *columns))
    second = second.reshape((inside, shapes.numel(b.shape[d] for d in columns)))
    return product(first, second).reshape(outside)


def tensorinv(A: Any, ind: int = 2) -> Any:
    """Return the B with tensordot(B, X, ind) = Y where tensordot(A, Y, Y.ndim) = X.

    >>> import tracejit
    >>> tracejit.linalg.tensorinv(tracejit.eye(6).reshape(2, 3, 6), ind=2).shape
    tracejit.Size([6, 2, 3])
    """
    count = as_size(ind)
    if count <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {count}")
    first, last = tuple(A.shape[:count]), tuple(A.shape[count:])
    rows, columns = shapes.numel(first), shapes.numel(last)
    if not shapes.equal(rows, columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {shapes.hint(columns)} != {shapes.hint(rows)}"
        )
    return inv(A.reshape((rows, columns))).reshape((*last, *first))


def tensorsolve(A: Any, B: Any, dims: Any = None) -> Any:
    """Return the X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to its end first.

    >>> import tracejit
    >>> A = tracejit.eye(6).reshape(2, 3, 6)
    >>> tracejit.linalg.tensorsolve(A, tracejit.ones(2, 3)).shape
    tracejit.Size([6])
    """
    if dims:
        moved = [shapes.normalize_dim(d, len(A.shape)) for d in dims]
        A = A.permute((*(d for d in range(len(A.shape)) if d not in moved), *moved))
    count = len(B.shape)
    rows, unknown = shapes.numel(A.shape[:count]), tuple(A.shape[count:])
    columns = shapes.numel(unknown)
    if not shapes.equal(rows, columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {shapes.hint(columns)} != {shapes.hint(rows)}"
        )
    return solve(A.reshape((rows, columns)), B.reshape((rows,))).reshape(unknown)


# -- sums with products ----------------------------------------------------------------------------
def _is_one(size: Any) -> bool:
    """Return True if the example's size is 1."""
    return shapes.hint(size) == 1


@method()
@autocasts(cuda="lower")
@older_order("beta", "alpha")
def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * input + alpha * (mat @ vec), (n,); `input` is (n,) or one number.

    RuntimeError for other dimensions and two dtypes.

    >>> import tracejit
    >>> tracejit.addmv(tracejit.ones(2), tracejit.eye(2), tracejit.ones(2))
    tensor([2., 2.])
    """
    if len(mat.shape) != 2 or len(vec.shape) != 1 or len(input.shape) > 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {len(input.shape)}, {len(mat.shape)}, "
            f"{len(vec.shape)}"
        )
    if not input.dtype is mat.dtype is vec.dtype:
        kinds = ", ".join(map(title, (input, mat))) + f", and {title(vec)}"
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {kinds}")
    n, k = mat.shape
    fits = not input.shape or shapes.equal(input.shape[0], 1 if _is_one(input.shape[0]) else n)
    if not shapes.equal(k, vec.shape[0]) or not fits:
        sizes = [shapes.hint(s) for s in (input.shape[0] if input.shape else 1, n, k, *vec.shape)]
        raise RuntimeError("size mismatch, got input ({}), mat ({}x{}), vec ({})".format(*sizes))
    column = input.unsqueeze(-1) if input.shape else input
    if mat.dtype in HALVES:
        # PyTorch rounds the numbers and the first term, and then the sum.
        beta, alpha = decisive(beta, 0, 1), decisive(alpha, 1)
        beta, alpha = as_written(beta, mat.dtype), as_written(alpha, mat.dtype)
        if not (is_number(beta) and beta == 0):
            column, beta = column * beta, 1
    return sum_with_product(
        addmm_record, column, mat, vec.unsqueeze(1), beta, alpha
    ).squeeze(1)


@method()
@autocasts(cpu="lower", cuda="lower")
@older_order("beta", "alpha")
def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * input + alpha * the sum of batch1[i] @ batch2[i], (n, m); `input` broadcasts.

    The batches are (b, n, k) and (b, k, m) of one dtype; RuntimeError where their sizes do not fit.

    >>> import tracejit
    >>> tracejit.addbmm(tracejit.zeros(1), tracejit.ones(5, 1, 2), tracejit.ones(5, 2, 1))
    tensor([[10.]])
    """
    for x in (batch1, batch2):
        if len(x.shape) != 3:
            shapes.normalize_dim(2, len(x.shape))
            raise RuntimeError("batch1 and batch2 must be 3D tensors")
    b, n, k = batch1.shape
    shapes.same(b, batch2.shape[0], "batch1 and batch2 must have same number of batches, got "
                f"{shapes.hint(b)} and {shapes.hint(batch2.shape[0])}")  # fmt: skip
    m, texts = batch2.shape[2], [
        "x".join(str(shapes.hint(s)) for s in x.shape[1:]) for x in (batch1, batch2)
    ]
    shapes.same(k, batch2.shape[1],
                f"Incompatible matrix sizes for bmm ({texts[0]} and {texts[1]})")  # fmt: skip
    for x in (batch1, input):
        if x.dtype is not batch2.dtype:
            raise RuntimeError("self and mat2 must have the same dtype, but got "
                               f"{title(x)} and {title(batch2)}")
    if batch1.dtype in HALVES:
        # PyTorch rounds after each product.
        for k in range(int(b)):
            input = addmm(input, batch1[k], batch2[k], beta=1 if k else beta, alpha=alpha)
        if int(b):
            return input
    left = batch1.transpose(0, 1).reshape((n, b * k))
    return sum_with_product(addmm_record, input, left, batch2.reshape((b * k, m)), beta, alpha)


@method()
@autocasts(cuda="lower")
@older_order("beta", "alpha")
def addr(input: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return beta * input + alpha * outer(vec1, vec2), (n, m); `input` broadcasts.

    RuntimeError for what is no vector.

    >>> import tracejit
    >>> tracejit.addr(tracejit.zeros(1), tracejit.tensor([1.0, 2.0]), tracejit.ones(2))
    tensor([[1., 1.],
            [2., 2.]])
    """
    for x, name in ((vec1, "vec1"), (vec2, "vec2")):
        if len(x.shape) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {len(x.shape)}-D")
    common = result_type(input, vec1, vec2)
    for number, name in ((beta, "beta"), (alpha, "alpha")):
        if common.category < FLOATING and isinstance(number, float):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    beta, alpha = decisive(beta, 0, 1), decisive(alpha, 1)
    if common in HALVES:
        beta, alpha = as_written(beta, common), as_written(alpha, common)
        first = convert(vec1, common)
        whole = outer(first * alpha, convert(vec2, common))
        alpha = 1
    else:
        whole = outer(*(convert(x, common) for x in (vec1, vec2)))
    shapes.check_expands(input.shape, whole.shape)
    if common.category == BOOL:
        whole = whole if alpha else whole & False
        return convert(input, common) | whole if beta else whole
    if not (is_number(alpha) and alpha == 1):
        whole = whole * alpha
    if is_number(beta) and beta == 0:
        return convert(whole, common)
    return convert(convert(input, whole.dtype) * beta + whole, common)


@method("trace")
@autocasts(cpu="float32")
def matrix_trace(input: Any) -> Any:
    """Sum the diagonal of a matrix, a 0-dim tensor. RuntimeError for other dimensions.

    >>> import tracejit
    >>> tracejit.eye(3).trace()
    tensor(3.)
    """
    if len(input.shape) != 2:
        raise RuntimeError("trace: expected a matrix, but got tensor with dim "
                           f"{len(input.shape)}")  # fmt: skip
    if input.dtype.category == BOOL:
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    return diagonal_of(input).sum()


def diagonal_of_matrices(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return the diagonals of matrices in the last two dimensions, a view.

    >>> import tracejit
    >>> tracejit.linalg.diagonal(tracejit.ones(5, 2, 3)).shape
    tracejit.Size([5, 2])
    """
    return diagonal_of(A, offset, dim1, dim2)
