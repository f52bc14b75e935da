"""Docstrings of the elementwise records that users call, as `tracejit.sin.__doc__`.

In: the name of a record. Out: its text: the formula, shapes and dtypes, errors, an example. Records
are objects, not functions, so that no `def` holds their text. `record.py` reads the table.
"""

from __future__ import annotations

_FLOATING = """Input of any shape; the result has the same shape. Integers and bools compute in
the default dtype. Complex numbers work too."""
_REAL = """Input of any shape; the result has the same shape. Integers and bools compute in the
default dtype. Raises NotImplementedError for complex numbers."""
_TWO_REAL = """Operands broadcast; the result has the broadcast shape. Integers and bools compute
in the default dtype. Raises NotImplementedError for complex numbers, RuntimeError for shapes
that do not broadcast."""
_BITS = """Operands broadcast; the result has the broadcast shape. Operands are integers or
bools, and so is the result. Raises NotImplementedError for other dtypes, RuntimeError for shapes
that do not broadcast."""
_POLYNOMIAL = """Degrees `n` are numbers or a tensor that broadcasts with `input`; the result has
the broadcast shape. Integers and bools compute in the default dtype. Raises NotImplementedError
for complex numbers, RuntimeError for shapes that do not broadcast."""
_BOUND = """Operands broadcast; the result has the broadcast shape. Its dtype is the one that
both promote to. Raises NotImplementedError for complex numbers, RuntimeError for shapes that do
not broadcast."""
_COMPARED = """Operands broadcast; the result has the broadcast shape. It is bool. Raises
RuntimeError for shapes that do not broadcast."""
_LARGER = """Operands broadcast; the result has the broadcast shape. Its dtype is the one that
both promote to. Raises RuntimeError for complex numbers and shapes that do not broadcast."""
_INTEGERS = """Operands broadcast; the result has the broadcast shape. Operands and result are
integers. Raises NotImplementedError for other dtypes, RuntimeError for shapes that do not
broadcast."""
_ORDERED = """Operands broadcast; the result has the broadcast shape. It is bool. Raises
NotImplementedError for complex numbers, RuntimeError for shapes that do not broadcast."""
_TWO_FLOATS = """Operands broadcast; the result has the broadcast shape. Its dtype is the one
that both promote to, a floating one. Raises NotImplementedError for integers and complex
numbers, RuntimeError for shapes that do not broadcast."""
_ASKED = """Input of any shape; the result has the same shape. It is bool."""

# name: (the formula, shapes and dtypes, a call, what it shows)
_ROWS: dict[str, tuple[str, str, str, str]] = {
    "acos": (
        "Return the arc cosine of each element, in radians: an angle in [0, pi], NaN outside\n"
        "[-1, 1].",
        _FLOATING, "tracejit.acos(tracejit.tensor([1.0, 0.0]))", "tensor([0.0000, 1.5708])"),
    "acosh": (
        "Return the inverse hyperbolic cosine of each element: log(x + sqrt(x^2 - 1)), NaN\n"
        "below 1.",
        _FLOATING, "tracejit.acosh(tracejit.tensor([1.0, 2.0]))", "tensor([0.0000, 1.3170])"),
    "airy_ai": (
        "Return the Airy function Ai of each element, a solution of y'' = x * y. Abramowitz\n"
        'and Stegun, "Handbook of mathematical functions", section 10.4, defines it.',
        _REAL, "tracejit.special.airy_ai(tracejit.tensor([0.0, 1.0]))",
        "tensor([0.3550, 0.1353])"),
    "asin": (
        "Return the arc sine of each element, in radians: an angle in [-pi / 2, pi / 2], NaN\n"
        "outside [-1, 1].",
        _FLOATING, "tracejit.asin(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 1.5708])"),
    "asinh": (
        "Return the inverse hyperbolic sine of each element: log(x + sqrt(x^2 + 1)).",
        _FLOATING, "tracejit.asinh(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.8814])"),
    "atan": (
        "Return the arc tangent of each element, in radians: an angle in (-pi / 2, pi / 2).",
        _FLOATING, "tracejit.atan(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.7854])"),
    "atan2": (
        "Return the angle of the point (other, input) from the x axis, in radians, in [-pi,\n"
        "pi].",
        _TWO_REAL, "tracejit.atan2(tracejit.tensor([1.0, 1.0]), tracejit.tensor([1.0, -1.0]))",
        "tensor([0.7854, 2.3562])"),
    "atanh": (
        "Return the inverse hyperbolic tangent of each element: log((1 + x) / (1 - x)) / 2,\n"
        "NaN outside [-1, 1].",
        _FLOATING, "tracejit.atanh(tracejit.tensor([0.0, 0.5]))", "tensor([0.0000, 0.5493])"),
    "bessel_j0": (
        "Return the Bessel function of the first kind and order 0 of each element.\n"
        "Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.bessel_j0(tracejit.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.7652])"),
    "bessel_j1": (
        "Return the Bessel function of the first kind and order 1 of each element.\n"
        "Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.bessel_j1(tracejit.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.4401])"),
    "bessel_y0": (
        "Return the Bessel function of the second kind and order 0 of each element, NaN\n"
        "below 0. Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.bessel_y0(tracejit.tensor([1.0, 2.0]))",
        "tensor([0.0883, 0.5104])"),
    "bessel_y1": (
        "Return the Bessel function of the second kind and order 1 of each element, NaN\n"
        "below 0. Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.bessel_y1(tracejit.tensor([1.0, 2.0]))",
        "tensor([-0.7812, -0.1070])"),
    "bitwise_and": (
        "Return the bits that both operands have.",
        _BITS, "tracejit.bitwise_and(tracejit.tensor([6, 5]), 3)", "tensor([2, 1])"),
    "bitwise_or": (
        "Return the bits that either operand has.",
        _BITS, "tracejit.bitwise_or(tracejit.tensor([6, 5]), 3)", "tensor([7, 7])"),
    "bitwise_xor": (
        "Return the bits that just one operand has.",
        _BITS, "tracejit.bitwise_xor(tracejit.tensor([6, 5]), 3)", "tensor([5, 6])"),
    "chebyshev_polynomial_t": (
        "Return the Chebyshev polynomial of the first kind, T_n(input) = cos(n *\n"
        "acos(input)) in [-1, 1].",
        _POLYNOMIAL, "tracejit.special.chebyshev_polynomial_t(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-0.5000,  1.0000])"),
    "chebyshev_polynomial_u": (
        "Return the Chebyshev polynomial of the second kind, U_n: U_0 = 1, U_1 = 2 * x,\n"
        "U_n+1 = 2 * x * U_n - U_n-1.",
        _POLYNOMIAL, "tracejit.special.chebyshev_polynomial_u(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([0., 3.])"),
    "chebyshev_polynomial_v": (
        "Return the Chebyshev polynomial of the third kind, V_n: V_0 = 1, V_1 = 2 * x - 1,\n"
        "V_n+1 = 2 * x * V_n - V_n-1.",
        _POLYNOMIAL, "tracejit.special.chebyshev_polynomial_v(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  1.])"),
    "chebyshev_polynomial_w": (
        "Return the Chebyshev polynomial of the fourth kind, W_n: W_0 = 1, W_1 = 2 * x + 1,\n"
        "W_n+1 = 2 * x * W_n - W_n-1.",
        _POLYNOMIAL, "tracejit.special.chebyshev_polynomial_w(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([1., 5.])"),
    "clamp_max": (
        "Return the smaller of each element and `max`, a tensor or a number; NaN stays.",
        _BOUND, "tracejit.clamp_max(tracejit.tensor([1.0, 3.0]), 2.0)", "tensor([1., 2.])"),
    "clamp_min": (
        "Return the larger of each element and `min`, a tensor or a number; NaN stays.",
        _BOUND, "tracejit.clamp_min(tracejit.tensor([1.0, 3.0]), 2.0)", "tensor([2., 3.])"),
    "copysign": (
        "Return the magnitude of `input` with the sign of `other`, zeros included.",
        _TWO_REAL, "tracejit.copysign(tracejit.tensor([1.0, 2.0]), tracejit.tensor([-1.0, 0.0]))",
        "tensor([-1.,  2.])"),
    "cos": (
        "Return the cosine of each element, in radians.",
        _FLOATING, "tracejit.cos(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 0.5403])"),
    "cosh": (
        "Return the hyperbolic cosine of each element: (exp(x) + exp(-x)) / 2.",
        _FLOATING, "tracejit.cosh(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 1.5431])"),
    "digamma": (
        "Return the logarithmic derivative of the gamma function of each element; -inf at 0,\n"
        "NaN at negative integers.",
        _REAL, "tracejit.digamma(tracejit.tensor([1.0, 2.0]))", "tensor([-0.5772,  0.4228])"),
    "entr": (
        "Return the entropy term of each element: -x * log(x), 0 at 0 and -inf below.",
        _REAL, "tracejit.special.entr(tracejit.tensor([0.0, 0.5]))", "tensor([0.0000, 0.3466])"),
    "eq": (
        "Return True where both operands are equal; NaN equals nothing.",
        _COMPARED, "tracejit.eq(tracejit.tensor([1, 2]), 2)", "tensor([False,  True])"),
    "erf": (
        "Return the error function of each element: 2 / sqrt(pi) times the integral of\n"
        "exp(-t^2) from 0 to x.",
        _REAL, "tracejit.erf(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.8427])"),
    "erfc": (
        "Return the complement of the error function, 1 - erf(x), without its loss of digits\n"
        "for large x.",
        _REAL, "tracejit.erfc(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 0.1573])"),
    "erfcx": (
        "Return the scaled complement of the error function: exp(x^2) * erfc(x).",
        _REAL, "tracejit.special.erfcx(tracejit.tensor([0.0, 10.0]))", "tensor([1.0000, 0.0561])"),
    "erfinv": (
        "Return the inverse of the error function: inf at 1, NaN outside [-1, 1].",
        _REAL, "tracejit.erfinv(tracejit.tensor([0.0, 0.5]))", "tensor([0.0000, 0.4769])"),
    "exp": (
        "Return e to the power of each element.",
        _FLOATING, "tracejit.exp(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 2.7183])"),
    "exp2": (
        "Return 2 to the power of each element.",
        _FLOATING, "tracejit.exp2(tracejit.tensor([0.0, 3.0]))", "tensor([1., 8.])"),
    "expm1": (
        "Return exp(x) - 1 of each element, without its loss of digits near 0.",
        _FLOATING, "tracejit.expm1(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 1.7183])"),
    "fill": (
        "Return a tensor like `input` with `value`, a number or a tensor of no dimension, in\n"
        "each place.",
        "The result has the shape and dtype of `input`. Raises RuntimeError for a `value`\n"
        "that has dimensions.",
        "tracejit.fill(tracejit.zeros(2), 7.0)", "tensor([7., 7.])"),
    "fmax": (
        "Return the larger of both operands; where one is NaN the other.",
        _LARGER, 'tracejit.fmax(tracejit.tensor([1.0, tracejit.nan]), tracejit.tensor([2.0, 3.0]))',
        "tensor([2., 3.])"),
    "fmin": (
        "Return the smaller of both operands; where one is NaN the other.",
        _LARGER, 'tracejit.fmin(tracejit.tensor([1.0, tracejit.nan]), tracejit.tensor([2.0, 3.0]))',
        "tensor([1., 3.])"),
    "gcd": (
        "Return the greatest common divisor of both operands; of 0 and 0 it is 0.",
        _INTEGERS, "tracejit.gcd(tracejit.tensor([12, 7]), tracejit.tensor(8))", "tensor([4, 1])"),
    "ge": (
        "Return True where `input` is at least `other`; NaN is not.",
        _ORDERED, "tracejit.ge(tracejit.tensor([1, 2]), 2)", "tensor([False,  True])"),
    "gt": (
        "Return True where `input` is greater than `other`; NaN is not.",
        _ORDERED, "tracejit.gt(tracejit.tensor([1, 2]), 1)", "tensor([False,  True])"),
    "heaviside": (
        "Return the unit step: 0 where `input` is negative, 1 where positive, `values` where\n"
        "it is 0.",
        "Operands broadcast; the result has the broadcast shape. Both have one dtype, that\n"
        "of the result. Raises RuntimeError for complex numbers, two dtypes and shapes that\n"
        "do not broadcast.",
        "tracejit.heaviside(tracejit.tensor([-1.0, 0.0, 1.0]), tracejit.tensor(0.5))",
        "tensor([0.0000, 0.5000, 1.0000])"),
    "hermite_polynomial_h": (
        "Return the Hermite polynomial of physics, H_n: H_0 = 1, H_1 = 2 * x, H_n+1 = 2 * x\n"
        "* H_n - 2 * n * H_n-1.",
        _POLYNOMIAL, "tracejit.special.hermite_polynomial_h(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  2.])"),
    "hermite_polynomial_he": (
        "Return the Hermite polynomial of probability, He_n: He_0 = 1, He_1 = x, He_n+1 = x\n"
        "* He_n - n * He_n-1.",
        _POLYNOMIAL, "tracejit.special.hermite_polynomial_he(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-0.7500,  0.0000])"),
    "hypot": (
        "Return the hypotenuse of both operands: sqrt(input^2 + other^2).",
        _TWO_FLOATS, "tracejit.hypot(tracejit.tensor([3.0]), tracejit.tensor([4.0]))",
        "tensor([5.])"),
    "i0": (
        "Return the modified Bessel function of the first kind and order 0 of each element.\n"
        "Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.i0(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 1.2661])"),
    "i0e": (
        "Return the scaled modified Bessel function of the first kind and order 0: exp(-|x|)\n"
        "* i0(x).",
        _REAL, "tracejit.special.i0e(tracejit.tensor([0.0, 1.0]))", "tensor([1.0000, 0.4658])"),
    "i1": (
        "Return the modified Bessel function of the first kind and order 1 of each element.\n"
        "Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.i1(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.5652])"),
    "i1e": (
        "Return the scaled modified Bessel function of the first kind and order 1: exp(-|x|)\n"
        "* i1(x).",
        _REAL, "tracejit.special.i1e(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.2079])"),
    "igamma": (
        "Return the regularised lower incomplete gamma function: the integral of t^(a - 1) *\n"
        "exp(-t) from 0 to x, over gamma(a). Here a is `input` and x is `other`.",
        _TWO_FLOATS, "tracejit.igamma(tracejit.tensor([1.0]), tracejit.tensor([2.0]))",
        "tensor([0.8647])"),
    "igammac": (
        "Return the regularised upper incomplete gamma function: 1 - igamma(input, other),\n"
        "without its loss of digits.",
        _TWO_FLOATS, "tracejit.igammac(tracejit.tensor([1.0]), tracejit.tensor([2.0]))",
        "tensor([0.1353])"),
    "isnan": (
        "Return True where an element is not a number.",
        _ASKED, 'tracejit.isnan(tracejit.tensor([1.0, tracejit.nan]))', "tensor([False,  True])"),
    "laguerre_polynomial_l": (
        "Return the Laguerre polynomial L_n: L_0 = 1, L_1 = 1 - x, (n + 1) * L_n+1 = (2 * n\n"
        "+ 1 - x) * L_n - n * L_n-1.",
        _POLYNOMIAL, "tracejit.special.laguerre_polynomial_l(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([ 0.1250, -0.5000])"),
    "lcm": (
        "Return the least common multiple of both operands, never negative.",
        _INTEGERS, "tracejit.lcm(tracejit.tensor([4, 5]), tracejit.tensor(6))",
        "tensor([12, 30])"),
    "le": (
        "Return True where `input` is at most `other`; NaN is not.",
        _ORDERED, "tracejit.le(tracejit.tensor([1, 2]), 1)", "tensor([ True, False])"),
    "legendre_polynomial_p": (
        "Return the Legendre polynomial P_n: P_0 = 1, P_1 = x, (n + 1) * P_n+1 = (2 * n + 1)\n"
        "* x * P_n - n * P_n-1.",
        _POLYNOMIAL, "tracejit.special.legendre_polynomial_p(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-0.1250,  1.0000])"),
    "lerp": (
        "Return the point at `weight` of the way from `input` to `end`: input + weight *\n"
        "(end - input).",
        "Operands broadcast; the result has the broadcast shape and their dtype. Raises\n"
        "NotImplementedError for integers, RuntimeError for shapes that do not broadcast.",
        "tracejit.lerp(tracejit.tensor([0.0, 2.0]), tracejit.tensor([1.0, 4.0]), 0.5)",
        "tensor([0.5000, 3.0000])"),
    "lgamma": (
        "Return the logarithm of the magnitude of the gamma function of each element.",
        _REAL, "tracejit.lgamma(tracejit.tensor([1.0, 5.0]))", "tensor([0.0000, 3.1781])"),
    "log": (
        "Return the natural logarithm of each element: -inf at 0, NaN below.",
        _FLOATING, "tracejit.log(tracejit.tensor([1.0, 10.0]))", "tensor([0.0000, 2.3026])"),
    "log10": (
        "Return the decimal logarithm of each element: -inf at 0, NaN below.",
        _FLOATING, "tracejit.log10(tracejit.tensor([1.0, 10.0]))", "tensor([0., 1.])"),
    "log1p": (
        "Return log(1 + x) of each element, without its loss of digits near 0.",
        _FLOATING, "tracejit.log1p(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.6931])"),
    "log2": (
        "Return the binary logarithm of each element: -inf at 0, NaN below.",
        _FLOATING, "tracejit.log2(tracejit.tensor([1.0, 8.0]))", "tensor([0., 3.])"),
    "log_ndtr": (
        "Return the logarithm of the distribution function of N(0, 1), precise far below 0.",
        _REAL, "tracejit.special.log_ndtr(tracejit.tensor([-10.0, 0.0]))",
        "tensor([-53.2313,  -0.6931])"),
    "log_sigmoid": (
        "Return log(1 / (1 + exp(-x))) of each element, without overflow.",
        "Input of any shape; the result has the same shape. Its dtype is the same floating\n"
        "one. Raises NotImplementedError for integers and complex numbers.",
        "tracejit.nn.functional.logsigmoid(tracejit.tensor([-100.0, 0.0]))",
        "tensor([-100.0000,   -0.6931])"),
    "logaddexp": (
        "Return log(exp(input) + exp(other)), without overflow.",
        "Operands broadcast; the result has the broadcast shape. Its dtype is the one that\n"
        "both promote to, a floating one. Raises NotImplementedError for integers,\n"
        "RuntimeError for shapes that do not broadcast.",
        "tracejit.logaddexp(tracejit.tensor([0.0]), tracejit.tensor([0.0]))", "tensor([0.6931])"),
    "logaddexp2": (
        "Return log2(2^input + 2^other), without overflow.",
        _TWO_FLOATS, "tracejit.logaddexp2(tracejit.tensor([0.0]), tracejit.tensor([0.0]))",
        "tensor([1.])"),
    "logical_and": (
        "Return True where neither operand is 0.",
        _COMPARED, "tracejit.logical_and(tracejit.tensor([0, 1]), tracejit.tensor([1, 2]))",
        "tensor([False,  True])"),
    "logical_not": (
        "Return True where an element is 0.",
        _ASKED, "tracejit.logical_not(tracejit.tensor([0, 3]))", "tensor([ True, False])"),
    "logical_or": (
        "Return True where an operand is not 0.",
        _COMPARED, "tracejit.logical_or(tracejit.tensor([0, 1]), tracejit.tensor([0, 2]))",
        "tensor([False,  True])"),
    "logical_xor": (
        "Return True where just one operand is not 0.",
        _COMPARED, "tracejit.logical_xor(tracejit.tensor([0, 1]), tracejit.tensor([1, 2]))",
        "tensor([ True, False])"),
    "lt": (
        "Return True where `input` is less than `other`; NaN is not.",
        _ORDERED, "tracejit.lt(tracejit.tensor([1, 2]), 2)", "tensor([ True, False])"),
    "maximum": (
        "Return the larger of both operands; NaN where one is NaN.",
        _LARGER, "tracejit.maximum(tracejit.tensor([1.0, 4.0]), tracejit.tensor([2.0, 3.0]))",
        "tensor([2., 4.])"),
    "minimum": (
        "Return the smaller of both operands; NaN where one is NaN.",
        _LARGER, "tracejit.minimum(tracejit.tensor([1.0, 4.0]), tracejit.tensor([2.0, 3.0]))",
        "tensor([1., 3.])"),
    "modified_bessel_i0": (
        "Return the modified Bessel function of the first kind and order 0 of each element,\n"
        "as `i0`.",
        _REAL, "tracejit.special.modified_bessel_i0(tracejit.tensor([0.0, 1.0]))",
        "tensor([1.0000, 1.2661])"),
    "modified_bessel_i1": (
        "Return the modified Bessel function of the first kind and order 1 of each element,\n"
        "as `i1`.",
        _REAL, "tracejit.special.modified_bessel_i1(tracejit.tensor([0.0, 1.0]))",
        "tensor([0.0000, 0.5652])"),
    "modified_bessel_k0": (
        "Return the modified Bessel function of the second kind and order 0 of each element,\n"
        "NaN below 0. Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.modified_bessel_k0(tracejit.tensor([1.0, 2.0]))",
        "tensor([0.4210, 0.1139])"),
    "modified_bessel_k1": (
        "Return the modified Bessel function of the second kind and order 1 of each element,\n"
        "NaN below 0. Abramowitz and Stegun, chapter 9, defines it.",
        _REAL, "tracejit.special.modified_bessel_k1(tracejit.tensor([1.0, 2.0]))",
        "tensor([0.6019, 0.1399])"),
    "mul": (
        "Return the product of both operands, tensors or numbers.",
        "Operands broadcast; the result has the broadcast shape. Its dtype is the one that\n"
        "both promote to. Raises RuntimeError for shapes that do not broadcast.",
        "tracejit.mul(tracejit.tensor([1, 2]), 3)", "tensor([3, 6])"),
    "ndtr": (
        "Return the distribution function of N(0, 1) of each element: (1 + erf(x / sqrt(2)))\n"
        "/ 2.",
        _REAL, "tracejit.special.ndtr(tracejit.tensor([0.0, 1.0]))", "tensor([0.5000, 0.8413])"),
    "ndtri": (
        "Return the inverse of the distribution function of N(0, 1): the quantile of each\n"
        "element, NaN outside [0, 1].",
        _REAL, "tracejit.special.ndtri(tracejit.tensor([0.5, 0.975]))",
        "tensor([0.0000, 1.9600])"),
    "ne": (
        "Return True where both operands differ; NaN differs from everything.",
        _COMPARED, "tracejit.ne(tracejit.tensor([1, 2]), 2)", "tensor([ True, False])"),
    "neg": (
        "Return each element negated; unsigned integers wrap.",
        "Input of any shape; the result has the same shape. Its dtype is the same. Raises\n"
        "RuntimeError for bools.",
        "tracejit.neg(tracejit.tensor([1.0, -2.0]))", "tensor([-1.,  2.])"),
    "nextafter": (
        "Return the next number of the dtype from `input` towards `other`.",
        _TWO_FLOATS,
        "tracejit.nextafter(tracejit.tensor([1.0]), tracejit.tensor([2.0])).item() - 1",
        "1.1920928955078125e-07"),
    "reciprocal": (
        "Return 1 / x of each element; inf at 0.",
        _FLOATING, "tracejit.reciprocal(tracejit.tensor([2.0, 4.0]))", "tensor([0.5000, 0.2500])"),
    "rsqrt": (
        "Return 1 / sqrt(x) of each element: inf at 0, NaN below.",
        _FLOATING, "tracejit.rsqrt(tracejit.tensor([1.0, 4.0]))", "tensor([1.0000, 0.5000])"),
    "scaled_modified_bessel_k0": (
        "Return the scaled modified Bessel function of the second kind and order 0: exp(x) *\n"
        "modified_bessel_k0(x).",
        _REAL, "tracejit.special.scaled_modified_bessel_k0(tracejit.tensor([1.0, 2.0]))",
        "tensor([1.1445, 0.8416])"),
    "scaled_modified_bessel_k1": (
        "Return the scaled modified Bessel function of the second kind and order 1: exp(x) *\n"
        "modified_bessel_k1(x).",
        _REAL, "tracejit.special.scaled_modified_bessel_k1(tracejit.tensor([1.0, 2.0]))",
        "tensor([1.6362, 1.0335])"),
    "shifted_chebyshev_polynomial_t": (
        "Return the Chebyshev polynomial of the first kind of [0, 1]: T_n(2 * input - 1).",
        _POLYNOMIAL,
        "tracejit.special.shifted_chebyshev_polynomial_t(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  1.])"),
    "shifted_chebyshev_polynomial_u": (
        "Return the Chebyshev polynomial of the second kind of [0, 1]: U_n(2 * input - 1).",
        _POLYNOMIAL,
        "tracejit.special.shifted_chebyshev_polynomial_u(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  3.])"),
    "shifted_chebyshev_polynomial_v": (
        "Return the Chebyshev polynomial of the third kind of [0, 1]: V_n(2 * input - 1).",
        _POLYNOMIAL,
        "tracejit.special.shifted_chebyshev_polynomial_v(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  1.])"),
    "shifted_chebyshev_polynomial_w": (
        "Return the Chebyshev polynomial of the fourth kind of [0, 1]: W_n(2 * input - 1).",
        _POLYNOMIAL,
        "tracejit.special.shifted_chebyshev_polynomial_w(tracejit.tensor([0.5, 1.0]), 2)",
        "tensor([-1.,  5.])"),
    "sigmoid": (
        "Return the logistic function of each element: 1 / (1 + exp(-x)), between 0 and 1.",
        _FLOATING, "tracejit.sigmoid(tracejit.tensor([-1.0, 0.0]))", "tensor([0.2689, 0.5000])"),
    "sin": (
        "Return the sine of each element, in radians.",
        _FLOATING, "tracejit.sin(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.8415])"),
    "sinc": (
        "Return the normalised sinc of each element: sin(pi * x) / (pi * x), 1 at 0.",
        _FLOATING, "tracejit.sinc(tracejit.tensor([0.0, 0.5]))", "tensor([1.0000, 0.6366])"),
    "sinh": (
        "Return the hyperbolic sine of each element: (exp(x) - exp(-x)) / 2.",
        _FLOATING, "tracejit.sinh(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 1.1752])"),
    "spherical_bessel_j0": (
        "Return the spherical Bessel function of the first kind and order 0: sin(x) / x, 1\n"
        "at 0.",
        _REAL, "tracejit.special.spherical_bessel_j0(tracejit.tensor([0.0, 1.0]))",
        "tensor([1.0000, 0.8415])"),
    "sqrt": (
        "Return the square root of each element, NaN below 0.",
        _FLOATING, "tracejit.sqrt(tracejit.tensor([4.0, 9.0]))", "tensor([2., 3.])"),
    "tan": (
        "Return the tangent of each element, in radians.",
        _FLOATING, "tracejit.tan(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 1.5574])"),
    "tanh": (
        "Return the hyperbolic tangent of each element, between -1 and 1.",
        _FLOATING, "tracejit.tanh(tracejit.tensor([0.0, 1.0]))", "tensor([0.0000, 0.7616])"),
    "xlog1py": (
        "Return input * log(1 + other), which is 0 where `input` is 0.",
        _TWO_REAL,
        "tracejit.special.xlog1py(tracejit.tensor([0.0, 2.0]), tracejit.tensor([-1.0, 1.0]))",
        "tensor([0.0000, 1.3863])"),
    "xlogy": (
        "Return input * log(other), which is 0 where `input` is 0.",
        _TWO_REAL, "tracejit.xlogy(tracejit.tensor([0.0, 2.0]), tracejit.tensor([0.0, 10.0]))",
        "tensor([0.0000, 4.6052])"),
    "zeta": (
        "Return the Hurwitz zeta function: the sum of (k + other)^-input over k = 0, 1, ...;\n"
        "NaN where `input` is below 1.",
        _TWO_REAL, "tracejit.special.zeta(tracejit.tensor([2.0]), 1.0)", "tensor([1.6449])"),
}


def _text(name: str) -> str:
    """Return the docstring of a record: formula, shapes, example."""
    formula, shapes, call, shown = _ROWS[name]
    return f"{formula}\n\n{shapes}\n\n>>> import tracejit\n>>> {call}\n{shown}\n"


TEXTS = {name: _text(name) for name in _ROWS}
__test__ = TEXTS  # doctest runs their examples
