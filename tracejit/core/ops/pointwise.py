"""Elementwise ops under one roof: `pointwise.add`, `pointwise.where`, `pointwise.convert` ...

In: nothing. Out: the names of the families in `pointwise_*.py`. The other op families refer to them
as `pointwise.<name>`; the package's front reads them, too.
"""

# ruff: noqa: F401, I001
from tracejit.core.ops.additions import add, addcdiv, addcmul, rsub, sub, subtract
from tracejit.core.ops.pointwise_arithmetic import (
    div, divide, floor_divide, fmod, lerp, mul, multiply, neg, negative, pow,
    reciprocal, remainder, square, true_divide,
)  # fmt: skip
from tracejit.core.ops.pointwise_complex import (
    adjoint, angle, complex, conj, conj_physical, imag, is_complex, is_conj, isreal, polar, real,
    view_as_complex, view_as_real,
)  # fmt: skip
from tracejit.core.ops.pointwise_logic import (
    allclose, bitwise_and, bitwise_left_shift, bitwise_not, bitwise_or, bitwise_right_shift,
    bitwise_xor, clamp, clamp_max, clamp_min, clip, eq, equal, fill, ge,
    greater, greater_equal, gt, isclose,
    isfinite, isinf, isnan, le, less, less_equal, logical_and, logical_not, logical_or, logical_xor,
    lt, maximum, minimum, nan_to_num, ne, not_equal, where,
)  # fmt: skip
from tracejit.core.ops.pointwise_library import acosh, asinh, atan2, atanh, float_power, hypot
from tracejit.core.ops.pointwise_math import (
    abs, absolute, acos, asin, atan, ceil, cos, cosh, deg2rad, erf, erfc, exp, exp2, expm1, fix,
    floor, frac, log, log1p, log2, log10, positive, rad2deg, round,
    rsqrt, sgn, sigmoid, sign, sin, sinh, sqrt, tan, tanh, trunc,
)  # fmt: skip
from tracejit.core.ops.pointwise_record import (
    cast, clone, coerce, convert, copy, is_number, is_tensor, pointwise, promote, promote_float,
    promote_to, resolve_conj, resolve_neg, stop_gradient, type_as,
)  # fmt: skip
