"""Special functions under the names of PyTorch's `torch.special`.

In: tensors, integers as floating numbers. Out: tensors. A compiled program calls SciPy for the
functions that SciPy computes; the other functions are parts of its kernels.

>>> import tracejit
>>> tracejit.special.gammaln(tracejit.tensor([1.0, 5.0]))
tensor([0.0000, 3.1781])
"""

from __future__ import annotations

from tracejit.core.ops import out as _out
from tracejit.core.ops import sealing as _sealing
from tracejit.core.ops.bessel_functions import (
    airy_ai,
    bessel_j0,
    bessel_j1,
    bessel_y0,
    bessel_y1,
    i0,
    i0e,
    i1,
    i1e,
    modified_bessel_i0,
    modified_bessel_i1,
    modified_bessel_k0,
    modified_bessel_k1,
    scaled_modified_bessel_k0,
    scaled_modified_bessel_k1,
    spherical_bessel_j0,
)
from tracejit.core.ops.error_functions import erfcx, erfinv, log_ndtr, ndtr, ndtri
from tracejit.core.ops.gamma_functions import digamma, polygamma, zeta
from tracejit.core.ops.gamma_functions import igamma as gammainc
from tracejit.core.ops.gamma_functions import igammac as gammaincc
from tracejit.core.ops.gamma_functions import lgamma as gammaln
from tracejit.core.ops.gamma_functions import mvlgamma as multigammaln
from tracejit.core.ops.logarithms import entr, logit, sinc, xlog1py, xlogy
from tracejit.core.ops.orthogonal_polynomials import (
    chebyshev_polynomial_t,
    chebyshev_polynomial_u,
    chebyshev_polynomial_v,
    chebyshev_polynomial_w,
    hermite_polynomial_h,
    hermite_polynomial_he,
    laguerre_polynomial_l,
    legendre_polynomial_p,
    shifted_chebyshev_polynomial_t,
    shifted_chebyshev_polynomial_u,
    shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
)
from tracejit.core.ops.pointwise import erf, erfc, exp2, expm1, log1p, round
from tracejit.core.ops.pointwise import sigmoid as expit
from tracejit.core.ops.softmax import log_softmax, logsumexp, softmax

psi = digamma

globals().update(_out.with_out(globals(), _out.SPECIAL))

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma",
    "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc",
    "gammaln", "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e",
    "laguerre_polynomial_l", "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit",
    "logsumexp", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0",
    "modified_bessel_k1", "multigammaln", "ndtr", "ndtri", "polygamma", "psi", "round",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py",
    "xlogy", "zeta",
]  # fmt: skip

_sealing.seal_all(globals())
