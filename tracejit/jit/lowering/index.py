"""Index expressions: where an element lies, as a linear form of loop variables with sizes as
coefficients.

In: loop variables and the arithmetic of `element` functions (+ - * // % and comparisons). Out:
canonical `Index`es, so that a reshape of contiguous memory comes out as one variable, and
`Condition`s. Called by `emit.py`, which reads operands at an Index, and by `loops.py`, which splits
a variable where // or % of it remain.

Sizes are compared by structure only: nothing here may record a guard.

Before you add a rule here: all rules assume positive divisors, ranges that are not empty, and
symbols that count things. Equal indices should get equal keys, since `scalars.py` makes one scalar
per key. `divided` takes exact multiples out first, then asks the bounds, then merges with an inner
// or %. `_rejoined` undoes that: it divides again and looks for the same atoms. So a quotient must
come out the same on every way to it. `tests/lowering/test_emit_index.py` shows forms that no longer
simplify, and guards. A wrong form shows in `tests/lowering/test_lower.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from tracejit.jit.ir import sizes
from tracejit.jit.ir.sizes import SizeLike, SymInt, exact_division, size_max

_RESOLVED: dict[
    int, tuple[Any, int, SizeLike]
] = {}  # id of a size -> (the size, how many equalities were known, answer)
_KEPT = 20000


def resolved(size: SizeLike) -> SizeLike:
    """Return `size` in terms of symbols that are not known to equal something else."""
    if type(size) is not SymInt or not size.scope.equal:
        return size
    known, learnt = _RESOLVED.get(id(size)), size.scope.learnt
    if known is not None and known[0] is size and known[1] == learnt:
        return known[2]
    if len(_RESOLVED) > _KEPT:
        _RESOLVED.clear()
    answer = size.scope.resolve(size)
    _RESOLVED[id(size)] = (size, learnt, answer)
    return answer


def size_key(size: SizeLike) -> Hashable:
    """Return a key, equal for resolved sizes of equal structure; unlike hash(size) it records no
    guard."""
    return size.key if type(size) is SymInt else size


def same_size(a: SizeLike, b: SizeLike) -> bool:
    """Return True if two resolved sizes have the same structure. Records no guard."""
    return a is b or type(a) is type(b) and size_key(a) == size_key(b)


def is_one(size: SizeLike) -> bool:
    """Return True if a size is known to be 1."""
    size = resolved(size)
    return type(size) is int and size == 1


def is_zero(size: SizeLike) -> bool:
    return type(size) is int and size == 0


def exact_quotient(size: SizeLike, divisor: SizeLike) -> SizeLike | None:
    """Return `size / divisor` if that is known to be whole, else None.

    >>> exact_quotient(12, 4), exact_quotient(12, 5)
    (3, None)
    """
    if type(size) is not SymInt:
        if type(divisor) is SymInt:
            return 0 if size == 0 else None
        return None if divisor == 0 or size % divisor else size // divisor
    return 1 if same_size(size, divisor) else exact_division(size, divisor)


def known_nonnegative(size: SizeLike) -> bool:
    """Return True if `size >= 0` is known for all values of its symbols, which count things."""
    if type(size) is not SymInt:
        return size >= 0
    # An atom with a minus inside, such as (a - b) // 2, may be negative.
    if all(c >= 0 for c in size.terms.values()) and not any(
        "-" in str(atom) for monomial in size.terms for atom in monomial
    ):
        return True
    known = size.scope.nonnegative.get(size.key)
    if known is None:
        parts = (exact_quotient(size, extent) for extent in size.scope.extents.values())
        known = any(part is not None and known_nonnegative(part) for part in parts)
        size.scope.nonnegative[size.key] = known
    return known


class Variable:
    """Loop variable, `0 <= variable < extent`."""

    __slots__ = ("name", "extent", "key", "start", "stop")

    def __init__(self, name: str, extent: SizeLike, start: Index | None = None, stop: Any = None):
        self.name, self.extent, self.key = name, extent, ("variable", name)
        self.start, self.stop = start, stop  # a part of the range, of an enclosing chunk

    def bounds(self) -> tuple[SizeLike, SizeLike]:
        return 0, self.extent - 1

    def __repr__(self) -> str:
        return self.name


class Quotient:
    """`whole // divisor` that does not simplify."""

    __slots__ = ("whole", "divisor", "key")
    sign = "//"

    def __init__(self, whole: Index, divisor: SizeLike):
        self.whole, self.divisor = whole, divisor
        self.key = (self.sign, whole.key, size_key(divisor))

    def bounds(self) -> tuple[SizeLike, SizeLike] | None:
        within = self.whole.bounds()
        if within is None or not known_nonnegative(within[0]):
            return None
        # (a * b - 1) // b is a - 1; dividing a * b - 1 itself would leave a // of sizes.
        above = exact_quotient(within[1] + 1, self.divisor)
        return 0, above - 1 if above is not None else sizes.divided(within[1], self.divisor, "//")

    def __repr__(self) -> str:
        return f"({self.whole} {self.sign} {self.divisor})"


class Remainder(Quotient):
    """`whole % divisor` that does not simplify."""

    __slots__ = ()
    sign = "%"

    def bounds(self) -> tuple[SizeLike, SizeLike] | None:
        return 0, self.divisor - 1


class Read:
    """Index read from memory or computed: `scalar` is an expression of `emit.py`."""

    __slots__ = ("scalar", "extent", "key")

    def __init__(self, scalar: Any, extent: SizeLike | None = None):
        self.scalar, self.extent, self.key = scalar, extent, ("read", scalar.key)

    def bounds(self) -> tuple[SizeLike, SizeLike] | None:
        return None if self.extent is None else (0, self.extent - 1)

    def __repr__(self) -> str:
        return f"[{self.scalar}]"


Atom = Variable | Quotient | Read


class Index:
    """constant + sum of coefficient * atom; immutable. `==` and the like give Conditions, compare
    `.key`."""

    __slots__ = ("terms", "constant", "_key")

    def __init__(self, terms: dict[Hashable, tuple[Atom, SizeLike]], constant: SizeLike = 0):
        self.terms, self.constant = terms, constant
        self._key: Hashable = None

    @property
    def key(self) -> Hashable:
        if self._key is None:
            terms = sorted(((k, size_key(c)) for k, (_, c) in self.terms.items()), key=str)
            self._key = (tuple(terms), size_key(self.constant))
        return self._key

    def bounds(self) -> tuple[SizeLike, SizeLike] | None:
        """Return the smallest and largest value, if known. No range is taken to be empty."""
        low = high = self.constant
        for atom, coefficient in self.terms.values():
            within = atom.bounds()
            if within is None:
                return None
            if known_nonnegative(coefficient):
                low, high = low + coefficient * within[0], high + coefficient * within[1]
            elif known_nonnegative(-coefficient):
                low, high = low + coefficient * within[1], high + coefficient * within[0]
            else:
                return None
        return low, high

    def atoms(self) -> Iterator[Atom]:
        """Yield atoms, and those inside // and %."""
        for atom, _ in self.terms.values():
            yield atom
            if isinstance(atom, Quotient):
                yield from atom.whole.atoms()

    def __repr__(self) -> str:
        parts = [f"{c}*{a}" for a, c in self.terms.values()]
        return " + ".join([*parts, str(self.constant)])

    # -- arithmetic --------------------------------------------------------------------------------
    def __add__(self, other: Any) -> Index:
        return combined((self, 1), (as_index(other), 1))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Index:
        return combined((self, 1), (as_index(other), -1))

    def __rsub__(self, other: Any) -> Index:
        return combined((as_index(other), 1), (self, -1))

    def __neg__(self) -> Index:
        return combined((self, -1))

    def __mul__(self, other: Any) -> Index:
        if isinstance(other, Index):
            if other.terms and self.terms:
                raise TypeError(f"index expressions are linear: ({self}) * ({other})")
            self, other = (self, other.constant) if not other.terms else (other, self.constant)
        return combined((self, resolved(other)))

    __rmul__ = __mul__

    def __floordiv__(self, divisor: Any) -> Index:
        return divided(self, as_size(divisor))[0]

    def __mod__(self, divisor: Any) -> Index:
        return divided(self, as_size(divisor))[1]

    # -- comparison --------------------------------------------------------------------------------
    def __lt__(self, other: Any) -> Any:
        return below(self - other, 0)

    def __le__(self, other: Any) -> Any:
        return below(self - other, 1)

    def __gt__(self, other: Any) -> Any:
        return below(as_index(other) - self, 0)

    def __ge__(self, other: Any) -> Any:
        return below(as_index(other) - self, 1)

    def __eq__(self, other: Any) -> Any:
        return equality(self - other)

    def __ne__(self, other: Any) -> Any:
        return negated(equality(self - other))

    __hash__ = None  # type: ignore[assignment]


ZERO = Index({}, 0)


def as_index(x: Any) -> Index:
    """Return ints, sizes and variables as indices."""
    if isinstance(x, Index):
        return x
    if isinstance(x, (Variable, Quotient, Read)):
        return Index({x.key: (x, 1)}, 0)
    return Index({}, resolved(x))


def as_size(x: Any) -> SizeLike:
    if not isinstance(x, Index):
        return resolved(x)
    if x.terms:
        raise TypeError(f"index expressions are divided by sizes, not by ({x})")
    return x.constant


def combined(*parts: tuple[Index, SizeLike]) -> Index:
    """Return the sum of index * factor. A whole // d * d + whole % d becomes the whole again."""
    terms: dict[Hashable, tuple[Atom, SizeLike]] = {}
    constant: SizeLike = 0
    for index, factor in parts:
        constant = constant + index.constant * factor
        for key, (atom, coefficient) in index.terms.items():
            known = terms.get(key)
            total = coefficient * factor if known is None else known[1] + coefficient * factor
            terms[key] = (atom, total)
    terms = {k: (a, c) for k, (a, c) in terms.items() if not is_zero(c)}
    return _rejoined(Index(terms, constant))


def _rejoined(index: Index) -> Index:
    remainders = [a for a, _ in index.terms.values() if isinstance(a, Remainder)]
    for remainder in remainders:
        if remainder.key not in index.terms:
            continue
        factor = index.terms[remainder.key][1]
        quotient = remainder.whole // remainder.divisor
        scale = factor * remainder.divisor
        if quotient.terms and all(
            key in index.terms and same_size(index.terms[key][1], c * scale)
            for key, (_, c) in quotient.terms.items()
        ):
            rest = {
                k: t
                for k, t in index.terms.items()
                if k != remainder.key and k not in quotient.terms
            }
            without = Index(rest, index.constant - quotient.constant * scale)
            index = combined((without, 1), (remainder.whole, factor))
    return index


def divided(index: Index, divisor: SizeLike) -> tuple[Index, Index]:
    """Return (index // divisor, index % divisor), for a positive divisor."""
    if same_size(divisor, 1) or is_zero(divisor):  # a size of 0: there is no element to find
        return index, ZERO
    whole: dict[Hashable, tuple[Atom, SizeLike]] = {}
    rest: dict[Hashable, tuple[Atom, SizeLike]] = {}
    for key, (atom, coefficient) in index.terms.items():
        quotient = exact_quotient(coefficient, divisor)
        if quotient is None:
            rest[key] = (atom, coefficient)
        else:
            whole[key] = (atom, quotient)
    constant = exact_quotient(index.constant, divisor)
    left = Index(rest, index.constant if constant is None else 0)
    exact = Index(whole, 0 if constant is None else constant)
    if type(divisor) is int and type(left.constant) is int and left.terms:
        # From 0 to divisor - 1, so that the bounds can tell.
        shift = left.constant // divisor
        if shift:
            left, exact = Index(rest, left.constant - shift * divisor), exact + shift
    if within(left, divisor):
        return exact, left
    return exact + _quotient(left, divisor), _remainder(left, divisor)


def within(index: Index, extent: SizeLike) -> bool:
    """Return True if 0 <= index < extent is known."""
    bounds = index.bounds()
    return (
        bounds is not None
        and known_nonnegative(bounds[0])
        and known_nonnegative(extent - 1 - bounds[1])
    )


def only_atom(index: Index) -> Atom | None:
    """Return the atom an index consists of; None if there is more or less."""
    if len(index.terms) != 1 or not is_zero(index.constant):
        return None
    atom, coefficient = next(iter(index.terms.values()))
    return atom if type(coefficient) is int and coefficient == 1 else None


def _quotient(index: Index, divisor: SizeLike) -> Index:
    if not index.terms:
        return Index({}, index.constant // size_max(divisor, 1))
    atom = only_atom(index)
    if type(atom) is Quotient:
        return divided(atom.whole, atom.divisor * divisor)[0]
    if type(atom) is Remainder:
        parts = exact_quotient(atom.divisor, divisor)
        if parts is not None:
            return divided(divided(atom.whole, divisor)[0], parts)[1]
    return as_index(Quotient(index, divisor))


def _remainder(index: Index, divisor: SizeLike) -> Index:
    if not index.terms:
        return Index({}, index.constant % size_max(divisor, 1))
    atom = only_atom(index)
    if type(atom) is Remainder and exact_quotient(atom.divisor, divisor) is not None:
        return divided(atom.whole, divisor)[1]
    return as_index(Remainder(index, divisor))


# -- conditions ------------------------------------------------------------------------------------
class Condition:
    """Truth value of indices: a comparison with 0, or a combination of others."""

    __slots__ = ("sign", "parts", "key")

    def __init__(self, sign: str, parts: tuple):
        self.sign, self.parts = sign, parts  # "<" "==": (Index,); "and" "or" "not": Conditions
        self.key = (sign, *(p.key for p in parts))

    def __and__(self, other: Any) -> Any:
        return joined("and", self, other)

    def __or__(self, other: Any) -> Any:
        return joined("or", self, other)

    __rand__, __ror__ = __and__, __or__

    def __invert__(self) -> Any:
        return negated(self)

    def indices(self) -> Iterator[Index]:
        for part in self.parts:
            if isinstance(part, Index):
                yield part
            else:
                yield from part.indices()


def joined(sign: str, a: Any, b: Any) -> Any:
    """Return `a and b` or `a or b`; either may already be decided."""
    absorbing = sign == "or"
    for x, y in ((a, b), (b, a)):
        if isinstance(x, bool):
            return x if x is absorbing else y
    return Condition(sign, (a, b))


def negated(condition: Any) -> Any:
    return (not condition) if isinstance(condition, bool) else Condition("not", (condition,))


def below(difference: Index, limit: int) -> Any:
    """Return the condition `difference < limit`, decided if the bounds tell."""
    bounds = difference.bounds()
    if bounds is not None:
        if known_nonnegative(limit - 1 - bounds[1]):
            return True
        if known_nonnegative(bounds[0] - limit):
            return False
    return Condition("<", (difference - limit,))


def equality(difference: Index) -> Any:
    """Return the condition `difference == 0`, decided if the bounds tell."""
    if not difference.terms and type(difference.constant) is int:
        return difference.constant == 0
    bounds = difference.bounds()
    if bounds is not None and (
        known_nonnegative(bounds[0] - 1) or known_nonnegative(-bounds[1] - 1)
    ):
        return False
    return Condition("==", (difference,))


# -- shapes ----------------------------------------------------------------------------------------
def product(sizes: Sequence[SizeLike]) -> SizeLike:
    total: SizeLike = 1
    for size in sizes:
        total = total * size
    return total


def contiguous_strides(shape: Sequence[SizeLike]) -> list[SizeLike]:
    strides: list[SizeLike] = []
    step: SizeLike = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return strides[::-1]


def linear(index: Sequence[Any], strides: Sequence[SizeLike]) -> Index:
    """Return the element number of `index` in memory with these strides."""
    return combined(*((as_index(i), s) for i, s in zip(index, strides)))


def unravelled(flat: Any, shape: Sequence[SizeLike]) -> list[Index]:
    """Return the index tuple of element number `flat` of a contiguous tensor."""
    index: list[Index] = []
    rest = as_index(flat)
    for size in reversed(shape[1:]):
        rest, last = divided(rest, size)
        index.append(last)
    return [rest, *index[::-1]] if shape else []
