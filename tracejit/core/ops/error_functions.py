"""Error function and normal distribution: erfinv, erfcx, ndtr, ndtri, log_ndtr.

In: a tensor, integers as floating numbers. Out: a tensor of its shape. Programs call SciPy here.
Called by users, under the names of `tracejit.special`.
"""

from __future__ import annotations

import math

from tracejit.core.ops.pointwise_library import library
from tracejit.core.ops.pointwise_math import exp, special
from tracejit.core.ops.record import Op

erfinv = library(
    "erfinv", special("erfinv"),
    input=lambda grad, out: grad * (math.sqrt(math.pi) / 2 * exp(out * out)))

erfcx = library(
    "erfcx", special("erfcx"), methods=(), node_name="SpecialErfcxBackward0",
    input=lambda grad, input, out: grad * (2 * input * out - 2 / math.sqrt(math.pi)))

ndtr = library(
    "ndtr", special("ndtr"), methods=(), node_name="SpecialNdtrBackward0",
    input=lambda grad, input: grad * (exp(input * input * -0.5) / math.sqrt(2 * math.pi)))

ndtri = library(
    "ndtri", special("ndtri"), methods=(), node_name="SpecialNdtriBackward0",
    input=lambda grad, out: grad * (math.sqrt(2 * math.pi) * exp(out * out * 0.5)))

log_ndtr: Op = library(
    "log_ndtr", special("log_ndtr"), methods=(), node_name="SpecialLogNdtrBackward0",
    input=lambda grad, input: grad / erfcx(input / -math.sqrt(2)) * math.sqrt(2 / math.pi))
