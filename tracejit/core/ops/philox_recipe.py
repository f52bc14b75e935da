"""Random numbers as arithmetic: Philox 4x32-10, and numbers made from its words.

In: a seed, an offset (the number of the call) and an element's index. Out: that element's words,
uniform, normal or integer. `philox` runs this text on whole NumPy arrays. The lowering rooms
compile the same text into kernels, so both give the same bits.

Every function uses only integer operations, selects and the correctly rounded +, -, *, / and sqrt,
in one fixed order. Kernels must keep each rounding: the float functions are marked `uncontracted`.
Words are 32-bit values held in uint64.

A block of four words serves four elements of 32-bit kinds, two of 64-bit kinds. Normals come in
pairs, from the radius and the angle of a point in the plane (Box and Muller, 1958).
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,union-attr"

from __future__ import annotations

import numpy as np

WORD = np.uint64(0xFFFFFFFF)
BITS = np.uint64(32)
MULTIPLIER_0 = np.uint64(0xD2511F53)
MULTIPLIER_1 = np.uint64(0xCD9E8D57)
KEY_STEP_0 = np.uint64(0x9E3779B9)
KEY_STEP_1 = np.uint64(0xBB67AE85)
ZERO = np.uint64(0)
ONE = np.uint64(1)
TWO = np.uint64(2)
THREE = np.uint64(3)


def philox_round(c0, c1, c2, c3, k0, k1):
    """Run a round: return the next counter words."""
    p0 = c0 * MULTIPLIER_0
    p1 = c2 * MULTIPLIER_1
    return (p1 >> BITS) ^ c1 ^ k0, p1 & WORD, (p0 >> BITS) ^ c3 ^ k1, p0 & WORD


def philox4x32(c0, c1, c2, c3, k0, k1):
    """Run ten rounds over the counter c0..c3 with the key k0, k1: return four words."""
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    k0, k1 = (k0 + KEY_STEP_0) & WORD, (k1 + KEY_STEP_1) & WORD
    c0, c1, c2, c3 = philox_round(c0, c1, c2, c3, k0, k1)
    return c0, c1, c2, c3


def philox_words(seed, offset, block):
    """Return the four words of a block: the counter is (block, offset), the key is the seed."""
    c0, c1, c2, c3 = philox4x32(
        block & WORD, block >> BITS, offset & WORD, offset >> BITS, seed & WORD, seed >> BITS
    )
    return c0, c1, c2, c3


def word_of(seed, offset, index):
    """Return element `index`'s word, four elements to a block."""
    w0, w1, w2, w3 = philox_words(seed, offset, index >> TWO)
    odd = (index & ONE) != ZERO
    low, high = np.where(odd, w1, w0), np.where(odd, w3, w2)
    return np.where((index & TWO) != ZERO, high, low)


def word_pair_of(seed, offset, index):
    """Return element `index`'s two words, two elements to a block."""
    w0, w1, w2, w3 = philox_words(seed, offset, index >> ONE)
    odd = (index & ONE) != ZERO
    return np.where(odd, w2, w0), np.where(odd, w3, w1)


def float32_from_word(word):
    """Return a uniform of 24 bits in [0, 1)."""
    return np.float32(np.int64(word >> np.uint64(8))) * np.float32(5.9604644775390625e-08)


def float16_from_word(word):
    """Return a uniform of 11 bits in [0, 1), which float16 holds exactly, as float32."""
    return np.float32(np.int64(word >> np.uint64(21))) * np.float32(0.00048828125)


def bfloat16_from_word(word):
    """Return a uniform of 8 bits in [0, 1), which bfloat16 holds exactly, as float32."""
    return np.float32(np.int64(word >> np.uint64(24))) * np.float32(0.00390625)


def float64_from_words(first, second):
    """Return a uniform of 53 bits in [0, 1)."""
    bits = ((first >> np.uint64(5)) << np.uint64(26)) | (second >> np.uint64(6))
    return np.float64(np.int64(bits)) * np.float64(1.1102230246251565e-16)


def integer_from_words(first, second, low, span):
    """Return low + floor(r span / 2^64), r the 64 bits of both words; int64, 1 <= span < 2^64."""
    span_high, span_low = span >> BITS, span & WORD
    middle = first * span_low + ((second * span_low) >> BITS)
    rest = second * span_high + (middle & WORD)
    scaled = first * span_high + (middle >> BITS) + (rest >> BITS)
    return low + np.int64(scaled)


def log_float32(word):
    """Return log u, u = (word + 1) / 2^32."""
    u = np.float32(np.int64(word + ONE)) * np.float32(2.3283064365386963e-10)
    bits = np.float32(u).view(np.int32)
    k = (bits - np.int32(0x3F3504F3)) >> np.int32(23)
    m = np.int32(bits - (k << np.int32(23))).view(np.float32)
    f = m - np.float32(1.0)
    s = f / (f + np.float32(2.0))
    z = s * s
    p = np.float32(0.23582767) * z + np.float32(0.2853728)
    p = p * z + np.float32(0.40000334)
    p = p * z + np.float32(0.6666666)
    return np.float32(k) * np.float32(0.6931472) + (s * (p * z) + (s + s))


def radius_float32(word):
    """Return sqrt(-2 log u), u = (word + 1) / 2^32."""
    return np.sqrt(np.float32(-2.0) * log_float32(word))


def log_float64(first, second):
    """Return log u, u = (r + 1) / 2^53, r of 53 bits."""
    bits = ((first >> np.uint64(5)) << np.uint64(26)) | (second >> np.uint64(6))
    u = np.float64(np.int64(bits + ONE)) * np.float64(1.1102230246251565e-16)
    bits = np.float64(u).view(np.int64)
    k = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
    m = np.int64(bits - (k << np.int64(52))).view(np.float64)
    f = m - np.float64(1.0)
    s = f / (f + np.float64(2.0))
    z = s * s
    p = np.float64(0.14796094196395118) * z + np.float64(0.1531403690647703)
    p = p * z + np.float64(0.1818356482691241)
    p = p * z + np.float64(0.222221985642097)
    p = p * z + np.float64(0.285714287424682)
    p = p * z + np.float64(0.3999999999941435)
    p = p * z + np.float64(0.6666666666666734)
    return np.float64(k) * np.float64(0.6931471805599453) + (s * (p * z) + (s + s))


def radius_float64(first, second):
    """Return sqrt(-2 log u), u = (r + 1) / 2^53, r of 53 bits."""
    return np.sqrt(np.float64(-2.0) * log_float64(first, second))


def exponential_float32_from_word(word):
    """Return -log u, and half an eps where that would be 0."""
    log = log_float32(word)
    return np.where(log < np.float32(0.0), -log, np.float32(5.9604644775390625e-08))


def exponential_float64_from_words(first, second):
    """Return -log u, and half an eps where that would be 0."""
    log = log_float64(first, second)
    return np.where(log < np.float64(0.0), -log, np.float64(1.1102230246251565e-16))


def angle_float32(word):
    """Return (sin, cos) of the angle in -pi/4..pi/4 that the low 30 bits of the word choose."""
    part = np.int32(np.int64(word & np.uint64(0x3FFFFFFF))) - np.int32(0x20000000)
    r = np.float32(part) * np.float32(1.4629180792671596e-09)
    z = r * r
    p = np.float32(-0.00019516656) * z + np.float32(0.008332173)
    p = p * z + np.float32(-0.16666655)
    q = np.float32(2.443773e-05) * z + np.float32(-0.0013887362)
    q = q * z + np.float32(0.041666646)
    return p * z * r + r, q * (z * z) + (np.float32(1.0) - z * np.float32(0.5))


def angle_float64(first, second):
    """Return (sin, cos) of the angle in -pi/4..pi/4 that 30 bits of `first`, 22 of `second`
    choose."""
    part = ((first & np.uint64(0x3FFFFFFF)) << np.uint64(22)) | (second >> np.uint64(10))
    r = np.float64(np.int64(part) - np.int64(0x8000000000000))
    r = r * np.float64(3.487868498008632e-16)
    z = r * r
    p = np.float64(1.5896504885710328e-10) * z + np.float64(-2.505075326388594e-08)
    p = p * z + np.float64(2.755731366205677e-06)
    p = p * z + np.float64(-0.00019841269829725213)
    p = p * z + np.float64(0.008333333333322316)
    p = p * z + np.float64(-0.16666666666666632)
    q = np.float64(-1.1359448538089819e-11) * z + np.float64(2.0875719556290545e-09)
    q = q * z + np.float64(-2.755731432601625e-07)
    q = q * z + np.float64(2.4801587289394892e-05)
    q = q * z + np.float64(-0.001388888888887399)
    q = q * z + np.float64(0.0416666666666666)
    return p * z * r + r, q * (z * z) + (np.float64(1.0) - z * np.float64(0.5))


def coordinate(radius, sine, cosine, quarter):
    """Return radius times the sine of an angle, `quarter` quarter turns further on."""
    y = radius * np.where((quarter & ONE) != ZERO, cosine, sine)
    return np.where((quarter & TWO) != ZERO, -y, y)


def affine_float32(drawn, scale, shift):
    return drawn * scale + shift


def affine_float64(drawn, scale, shift):
    return drawn * scale + shift


def uniform_float32(seed, offset, index):
    return float32_from_word(word_of(seed, offset, index))


def uniform_float16(seed, offset, index):
    return float16_from_word(word_of(seed, offset, index))


def uniform_bfloat16(seed, offset, index):
    return bfloat16_from_word(word_of(seed, offset, index))


def uniform_float64(seed, offset, index):
    first, second = word_pair_of(seed, offset, index)
    return float64_from_words(first, second)


def normal_float32(seed, offset, index):
    w0, w1, w2, w3 = philox_words(seed, offset, index >> TWO)
    second_pair = (index & TWO) != ZERO
    turn = np.where(second_pair, w3, w1)
    radius = radius_float32(np.where(second_pair, w2, w0))
    sine, cosine = angle_float32(turn)
    quarter = (turn >> np.uint64(30)) + (ONE - (index & ONE))
    return coordinate(radius, sine, cosine, quarter)


def normal_float64(seed, offset, index):
    w0, w1, w2, w3 = philox_words(seed, offset, index >> ONE)
    radius = radius_float64(w0, w1)
    sine, cosine = angle_float64(w2, w3)
    quarter = (w2 >> np.uint64(30)) + (ONE - (index & ONE))
    return coordinate(radius, sine, cosine, quarter)


def exponential_float32(seed, offset, index):
    return exponential_float32_from_word(word_of(seed, offset, index))


def exponential_float64(seed, offset, index):
    first, second = word_pair_of(seed, offset, index)
    return exponential_float64_from_words(first, second)


def bernoulli(seed, offset, index, p):
    """Return True with probability p (float64), by a 24-bit uniform."""
    return np.float64(uniform_float32(seed, offset, index)) < p


def randint(seed, offset, index, low, span):
    """Return an int64 in low, ..., low + span - 1; `span` is uint64."""
    first, second = word_pair_of(seed, offset, index)
    return integer_from_words(first, second, low, span)


for _function in (log_float32, log_float64, radius_float32, radius_float64, angle_float32,
                  angle_float64, coordinate, affine_float32, affine_float64):  # fmt: skip
    _function.uncontracted = True
