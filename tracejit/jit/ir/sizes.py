"""Symbolic sizes: integers known only when a program runs.

In: arithmetic by ops, capture and lowering on extents. Out: canonical polynomials over symbols, and
guards, one for every decision that was taken from an example's value. Called by capture (which
makes symbols) and by every room after it (which reads, compares and evaluates them). A constant is
always a plain int, never a `SymInt`.

Before you add a rule here: it must hold for all values that the guards admit. What holds for the
example only goes through `decide`, which records a guard. Compare by `same_size` and
`type(x) is SymInt`: `==`, `bool`, `hash` and `int` record guards. Return canonical terms, by
`_normal` and with sorted monomials: `same_as` and `size_function` find sizes equal by them. Put a
rule for a quotient, a remainder, `max` or `min` into `divided`, `size_max` or `size_min`, to which
`_apply` and the parser come back. It must agree with `_FUNCTIONS`, which `evaluate` uses, for
negative operands too. `known_sign` takes an atom without a minus in its text for nonnegative.
Change `equal` only by `learn` and `restore`: sizes keep what they resolved to (`learnt`,
`forgotten`). Never learn an atom in terms of itself: resolving would not end. `restore` leaves
`functions`, `unsolved` and `asked` as they are, so their readers ask `equal` or `guards` again.
`tests/ir/test_sizes.py` shows circles, facts that stay after `restore`, and work done twice;
`tests/ops/test_shapes.py` and `tests/lowering/test_emit_index.py` show guards that nobody needs;
`tests/ir/test_text.py` shows functions that the printer, the parser and `evaluate` read apart.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Complex, Number, Real
from typing import Any

import numpy as np

from tracejit.jit.ir.bound_sizes import complete
from tracejit.jit.ir.named_in_code import ForCCode
from tracejit.jit.ir.size_facts import factors_of_one, known_sign, quotient, solvable
from tracejit.jit.ir.size_functions import SizeFunction, atoms_in, size_function
from tracejit.jit.ir.size_text import size_text

Atom = str | SizeFunction
SizeLike = Any  # int | SymInt

_FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min,
}
_RELATIONS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}


@dataclass(frozen=True)
class ShapeGuard:
    """`left relation right` held for the example; other calls need another program."""

    relation: str
    left: SizeLike
    right: SizeLike
    where: str

    @property
    def text(self) -> str:
        # In Python 3.11 `cached_property` has a lock, which a forked child may find taken.
        kept = vars(self).get("_text")
        if kept is None:
            kept = vars(self)["_text"] = f"{_text(self.left)} {self.relation} {_text(self.right)}"
        return str(kept)

    def __str__(self) -> str:
        return self.text

    def holds(self, values: Mapping[str, int]) -> bool:
        return _RELATIONS[self.relation](evaluate(self.left, values), evaluate(self.right, values))


@dataclass
class ShapeEnv:
    """Symbols of a program: example values, equalities learnt, guards recorded."""

    hints: dict[str, int] = field(default_factory=dict)
    equal: dict[Atom, SizeLike] = field(default_factory=dict)
    guards: list[ShapeGuard] = field(default_factory=list)
    where: Callable[[], str] = lambda: ""
    # Whether a size that is printed is printed by the program that is being recorded: as a number.
    shown: Callable[[], bool] = lambda: False
    asked: set[str] = field(default_factory=set, repr=False, compare=False)  # texts of `guards`
    functions: list[SizeFunction] = field(default_factory=list, repr=False, compare=False)
    # Sizes of several terms that count things, by key: they are not negative; and what follows.
    extents: dict[tuple, SizeLike] = field(default_factory=dict, repr=False, compare=False)
    nonnegative: dict[tuple, bool] = field(default_factory=dict, repr=False, compare=False)
    unsolved: list[tuple] = field(default_factory=list, repr=False, compare=False)  # see `agreed`
    # Loops that are lowered divide by sizes where there are elements: none of these is 0.
    settled: bool = field(default=False, repr=False, compare=False)
    learnt: int = 0  # changes whenever `equal` does: what was resolved before may not be any more
    forgotten: int = 0  # `learnt` when something was last forgotten
    # Atoms that were resolved when this much was known, and what they are.
    resolved: tuple[int, dict[Atom, SizeLike]] = field(
        default_factory=lambda: (0, {}), repr=False, compare=False)
    generic: tuple | None = field(default=None, repr=False, compare=False)  # see `storage.py`

    def symbol(self, hint: int, name: str | None = None) -> SymInt:
        """Make a symbol whose example value is `hint`."""
        name = name or f"s{len(self.hints)}"
        self.hints[name] = int(hint)
        return SymInt({(name,): 1}, self)

    def resolve(self, size: SizeLike) -> SizeLike:
        """`size` with all that is known equal to something else replaced by it."""
        if type(size) is not SymInt or not self.equal:
            return size
        if size.scope is not self:
            return self._replaced(size)
        if size._learnt != self.learnt:
            kept = size._learnt >= self.forgotten  # what it resolved to then is still so
            known = self._replaced(size if size._known is None or not kept else size._known)
            size._known = None if known is size else known
            size._learnt = self.learnt
        return size if size._known is None else size._known

    def _replaced(self, size: SizeLike) -> SizeLike:
        if self.equal.keys().isdisjoint(atoms_of(size)):
            return size
        if self.resolved[0] != self.learnt:
            self.resolved = (self.learnt, {})
        return _rebuilt(size, self._resolved)

    def _resolved(self, atom: Atom) -> SizeLike:
        """Return the known value of an atom. Answers are kept, for sizes have atoms in common."""
        learnt, answers = self.resolved
        found = answers.get(atom)
        if found is None:
            if atom in self.equal:
                found = self.resolve(self.equal[atom])
            elif isinstance(atom, str):
                found = SymInt({(atom,): 1}, self)
            else:
                left, right = (self.resolve(_thaw(x, self)) for x in atom.operands)
                found = self.resolve(_apply(atom.name, left, right))
            if learnt == self.learnt:
                answers[atom] = found
        return found

    def learn(self, atom: Atom, size: SizeLike) -> None:
        """From now on `atom` is known to be `size`."""
        self.equal[atom] = size
        self.learnt += 1
        if type(atom) is SizeFunction:
            self.functions.append(atom)
            return
        for function in self.functions:  # known of s0 // 2, so of (s1 + 1) // 2 where s0 = s1 + 1
            left = SymInt({(function,): 1}, self)
            if atom in symbols_of(left) and function in self.equal:
                zero = self.resolve(substitute(left, {atom: size}, self) - self.equal[function])
                if type(zero) is SymInt:
                    self._learn(zero)

    def complete(self, values: dict[str, int]) -> dict[str, int]:
        """`values` with the symbols that are known to equal bound ones bound too, in place."""
        equal = [(x, size) for x, size in self.equal.items() if isinstance(x, str)]
        complete(equal, values, symbols_of, evaluate)
        return values

    def snapshot(self) -> tuple[list[ShapeGuard], dict[Atom, SizeLike]]:
        return list(self.guards), dict(self.equal)

    def restore(self, known: tuple[list[ShapeGuard], dict[Atom, SizeLike]]) -> None:
        """Forget what was asked since `snapshot`."""
        if len(known[0]) != len(self.guards) or len(known[1]) != len(self.equal):
            self.guards[:] = known[0]
            self.equal = dict(known[1])
            self.learnt += 1
            self.forgotten = self.learnt

    def decide(self, relation: str, left: SizeLike, right: SizeLike) -> bool:
        """Return True if `left relation right`. Record a guard where only the example says so."""
        difference = self.resolve(left - right)
        if type(difference) is not SymInt:
            return _RELATIONS[relation](difference, 0)
        known = known_sign(difference.terms, relation)
        if known is not None:
            return known
        answer = _RELATIONS[relation](difference.hint, 0)
        held = relation if answer else _NEGATED[relation]
        guard = ShapeGuard(held, self.resolve(left), self.resolve(right), self.where())
        self._remember(guard)
        if held == "==" and not self._learn(difference):
            self.unsolved.append((guard, difference))
        return answer

    def agreed(self, left: SizeLike, right: SizeLike) -> bool:
        """Return True if a guard says that two resolved sizes are equal without telling any one
        symbol's value: s0 * s1 == 6."""
        zero = _terms(left - right) if self.unsolved else None
        for guard, difference in self.unsolved if zero else ():
            known = self.resolve(difference)
            if zero in (_terms(known), _terms(-known)) and any(g is guard for g in self.guards):
                return True
        return False

    def _remember(self, guard: ShapeGuard) -> None:
        if len(self.asked) != len(self.guards):
            self.asked = {g.text for g in self.guards}
        if guard.text not in self.asked:
            self.asked.add(guard.text)
            self.guards.append(guard)

    def _learn(self, zero: SymInt) -> bool:
        """Learn what follows if `zero`, a resolved size, is 0. Return True if anything does."""
        ones = factors_of_one(zero.terms)
        for factor in ones:
            self.learn(factor, 1)
        for atom, coefficient in () if ones else solvable(zero.terms):
            known = (SymInt({(atom,): coefficient}, self) - zero) * coefficient
            if atom not in atoms_of(known):
                self.learn(atom, known)
                return True
        return bool(ones)


def _item_order(term: tuple[tuple[Atom, ...], int]) -> tuple[list[str], int]:
    return [str(atom) for atom in term[0]], term[1]


_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


class SymInt:
    """Integer polynomial over symbols. A comparison answers by example and records a guard."""

    __slots__ = ("terms", "scope", "_key", "_atoms", "_known", "_learnt")

    def __init__(self, terms: dict[tuple[Atom, ...], int], scope: ShapeEnv):
        self.terms, self.scope = terms, scope
        self._key: tuple | None = None
        self._atoms: frozenset[Atom] | None = None
        self._known: SizeLike = None  # what it resolves to, None: itself ...
        self._learnt = -1  # ... when its scope had learnt this much

    # -- what it is -------------------------------------------------------
    @property  # type: ignore[misc]
    def __class__(self):
        return int  # isinstance(size, int) is True, while C code must still ask __index__

    @property
    def key(self) -> tuple:
        if self._key is None:
            terms = self.terms.items()
            self._key = tuple(terms if len(terms) == 1 else sorted(terms, key=_item_order))
        return self._key

    @property
    def hint(self) -> int:
        return evaluate(self, self.scope.hints)

    def __hash__(self) -> int:
        return hash(self.concretize())

    def same_as(self, other: SizeLike) -> bool:
        """Structural equality; records no guard."""
        if type(other) is SymInt and other.scope is not self.scope:
            return False
        if self is other or type(other) is SymInt and self.terms == other.terms:
            return True
        if not self.scope.equal and not self.scope.unsolved:
            return False
        a, b = self.scope.resolve(self), self.scope.resolve(other)
        if type(a) is type(b) and (a.terms == b.terms if type(a) is SymInt else a == b):
            return True
        return self.scope.agreed(a, b)

    def concretize(self) -> int:
        """Return the example's value, guarded: the program now depends on it."""
        value = self.hint
        self.scope.decide("==", self, value)
        return value

    __int__ = __index__ = __trunc__ = lambda self: self.concretize()

    def __float__(self) -> float:
        return float(self.concretize())

    def __bool__(self) -> bool:
        return self.scope.decide("!=", self, 0)

    @ForCCode
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.concretize(), dtype)

    @ForCCode
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions compute with the plain int, whose type gives way to their others'."""
        plain = [x.concretize() if type(x) is SymInt else x for x in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(int, name):
            raise AttributeError(f"'int' object has no attribute '{name}'")
        return getattr(self.concretize(), name)

    def __reduce__(self):
        return (int, (self.concretize(),))

    # -- arithmetic -------------------------------------------------------
    def __add__(self, other: SizeLike) -> SizeLike:
        if type(other) is not SymInt and not _is_int(other):
            return self.concretize() + other if _is_number(other) else NotImplemented
        return _sum(self.scope, (self, 1), (other, 1))

    __radd__ = __add__

    def __sub__(self, other: SizeLike) -> SizeLike:
        if type(other) is not SymInt and not _is_int(other):
            return self.concretize() - other if _is_number(other) else NotImplemented
        return _sum(self.scope, (self, 1), (other, -1))

    def __rsub__(self, other: SizeLike) -> SizeLike:
        if not _is_int(other):
            return other - self.concretize() if _is_number(other) else NotImplemented
        return _sum(self.scope, (other, 1), (self, -1))

    def __neg__(self) -> SizeLike:
        return _sum(self.scope, (self, -1))

    def __pos__(self) -> SymInt:
        return self

    def __mul__(self, other: SizeLike) -> SizeLike:
        if type(other) is not SymInt and not _is_int(other):
            return self.concretize() * other if _is_number(other) else NotImplemented
        other = _local(other, self.scope)
        if type(other) is int:
            if other == 1:
                return self
            scaled = {m: c * other for m, c in self.terms.items()}
            return SymInt(scaled, self.scope) if other else 0
        product: dict[tuple[Atom, ...], int] = {}
        for m, c in self.terms.items():
            for n, d in _terms(other).items():
                monomial = tuple(sorted(m + n, key=str)) if m and n else m or n
                product[monomial] = product.get(monomial, 0) + c * d
        return _normal(product, self.scope)

    __rmul__ = __mul__

    def __floordiv__(self, other: SizeLike) -> SizeLike:
        if type(other) is not SymInt and not _is_int(other):
            return self.concretize() // other if _is_number(other) else NotImplemented
        return divided(self, _divisor(other, self.scope), "//")

    def __rfloordiv__(self, other: int) -> SizeLike:
        if not _is_int(other):
            return other // self.concretize() if _is_number(other) else NotImplemented
        return divided(_local(other, self.scope), _divisor(self, self.scope), "//")

    def __mod__(self, other: SizeLike) -> SizeLike:
        if type(other) is not SymInt and not _is_int(other):
            return self.concretize() % other if _is_number(other) else NotImplemented
        return divided(self, _divisor(other, self.scope, "integer modulo"), "%")

    def __rmod__(self, other: int) -> SizeLike:
        if not _is_int(other):
            return other % self.concretize() if _is_number(other) else NotImplemented
        divisor = _divisor(self, self.scope, "integer modulo")
        return divided(_local(other, self.scope), divisor, "%")

    def __divmod__(self, other: SizeLike) -> Any:
        return (self // other, self % other) if _is_number(other) else NotImplemented

    def __rdivmod__(self, other: SizeLike) -> Any:
        return divmod(other, self.concretize()) if _is_number(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self.concretize() / (other.concretize() if type(other) is SymInt else other)

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.concretize()

    def __pow__(self, other: Any, *modulus: Any) -> Any:
        if modulus:
            return pow(self.concretize(), other, *modulus)
        if type(other) is int and 0 <= other <= 4:
            result: SizeLike = 1
            for _ in range(other):
                result = self * result
            return result
        return self.concretize() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** self.concretize()

    def __abs__(self) -> SizeLike:
        return self if self >= 0 else -self

    # -- comparison: decided by the example, guarded -----------------------
    def __eq__(self, other: Any) -> bool:
        if type(other) is SymInt or _is_int(other):
            return self.scope.decide("==", self, _local(other, self.scope))
        return self.concretize() == other if _is_number(other) else NotImplemented

    def __ne__(self, other: Any) -> bool:
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __lt__(self, other: Any) -> bool:
        return self._compare("<", other)

    def __le__(self, other: Any) -> bool:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> bool:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> bool:
        return self._compare(">=", other)

    def _compare(self, relation: str, other: Any) -> bool:
        if type(other) is SymInt or _is_int(other):
            return self.scope.decide(relation, self, _local(other, self.scope))
        if not has_order(other):
            return NotImplemented
        return _RELATIONS[relation](self.concretize(), other)

    # -- text ---------------------------------------------------------------
    def __str__(self) -> str:
        return str(self.concretize()) if self.scope.shown() else size_text(self.key)

    __repr__ = __str__

    def __format__(self, spec: str) -> str:
        return format(self.concretize(), spec) if spec else str(self)


def _is_number(value: Any) -> bool:
    return isinstance(value, Number)


def has_order(value: Any) -> bool:
    """Return True if numbers can be smaller than this. Else Python refuses, and its text names the
    sides in their order."""
    return isinstance(value, Number) and (isinstance(value, Real) or not isinstance(value, Complex))


def _is_int(value: Any) -> bool:
    return type(value) is int or (isinstance(value, int) and not isinstance(value, bool))


def _local(size: SizeLike, scope: ShapeEnv) -> SizeLike:
    """Return a size as seen in `scope`: symbols of another recording mean nothing here. A number
    that differs between calls gives the size that stands for it."""
    if type(size) is int or type(size) is SymInt and size.scope is scope:
        return size
    if hasattr(type(size), "as_size"):
        size = size.as_size()
    return size.concretize() if type(size) is SymInt and size.scope is not scope else size


def _is_positive(size: SizeLike) -> bool:
    """Return True if a size is a product of max(size, 1): ops divide by such sizes themselves."""
    if type(size) is not SymInt:
        return bool(size)
    atoms = [a for monomial in size.terms for a in monomial]
    return len(size.terms) == 1 and all(
        type(a) is SizeFunction and a.name == "max" and 1 in a.operands for a in atoms
    )


def _divisor(size: SizeLike, scope: ShapeEnv, what: str = "integer division or modulo") -> SizeLike:
    """Return a size to divide by, guarded not to be 0."""
    size = _local(size, scope)
    if scope.settled and type(size) is SymInt:
        return size
    if not _is_positive(size) and not size:
        raise ZeroDivisionError(f"{what} by zero")
    return size


def _terms(size: SizeLike) -> dict[tuple[Atom, ...], int]:
    return size.terms if type(size) is SymInt else {(): int(size)} if size else {}


def _normal(terms: dict[tuple[Atom, ...], int], scope: ShapeEnv) -> SizeLike:
    kept = {m: c for m, c in terms.items() if c} if 0 in terms.values() else terms
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return SymInt(kept, scope)


def _sum(scope: ShapeEnv, *parts: tuple[SizeLike, int]) -> SizeLike:
    total: dict[tuple[Atom, ...], int] = {}
    for size, sign in parts:
        for monomial, coefficient in _terms(_local(size, scope)).items():
            total[monomial] = total.get(monomial, 0) + sign * coefficient
    return _normal(total, scope)


def exact_division(size: SizeLike, divisor: SizeLike) -> SizeLike | None:
    """`size / divisor` when that is a polynomial."""
    if type(size) is not SymInt:
        return None
    found = quotient(size.terms, _terms(divisor))
    return None if found is None else _normal(found, size.scope)


def divided(size: SizeLike, divisor: SizeLike, sign: str) -> SizeLike:
    """`size // divisor` or `size % divisor`, of a divisor that is not 0: nobody is asked."""
    if type(size) is not SymInt and type(divisor) is not SymInt:
        return size // divisor if sign == "//" else size % divisor
    scope = (size if type(size) is SymInt else divisor).scope
    exact = exact_division(size, divisor)
    if exact is None:
        return _atom("floordiv" if sign == "//" else "mod", size, divisor, scope)
    return exact if sign == "//" else 0


def _text(size: SizeLike) -> str:
    return size_text(size.key) if type(size) is SymInt else str(size)


def _atom(function: str, left: SizeLike, right: SizeLike, scope: ShapeEnv) -> SizeLike:
    return SymInt({(size_function(function, _frozen(left), _frozen(right)),): 1}, scope)


def _frozen(size: SizeLike) -> Any:
    return size.key if type(size) is SymInt else int(size)


def _thaw(frozen: Any, scope: ShapeEnv) -> SizeLike:
    return frozen if type(frozen) is int else SymInt(dict(frozen), scope)


def size_max(a: SizeLike, b: SizeLike) -> SizeLike:
    if type(a) is not SymInt and type(b) is not SymInt:
        return max(a, b)
    return _atom("max", a, b, (a if type(a) is SymInt else b).scope)


def size_min(a: SizeLike, b: SizeLike) -> SizeLike:
    if type(a) is not SymInt and type(b) is not SymInt:
        return min(a, b)
    return _atom("min", a, b, (a if type(a) is SymInt else b).scope)


def symbols_of(size: SizeLike) -> set[str]:
    """Names of the symbols a size depends on."""
    return {atom for atom in atoms_of(size) if isinstance(atom, str)}


def atoms_of(size: SizeLike) -> frozenset[Atom]:
    """Return the symbols and functions of sizes in a size, with those inside others."""
    if type(size) is not SymInt:
        return frozenset()
    if size._atoms is None:
        size._atoms = atoms_in(size.terms)
    return size._atoms


def substitute(size: SizeLike, values: Mapping[Atom, SizeLike], scope: ShapeEnv) -> SizeLike:
    """`size` with atoms replaced; the result is canonical."""
    found = dict(values)  # what each atom becomes: sizes have atoms in common

    def replaced(atom: Atom) -> SizeLike:
        if atom not in found:
            if isinstance(atom, str) or atom.atoms.isdisjoint(values):
                found[atom] = SymInt({(atom,): 1}, scope)
            else:
                left, right = (_rebuilt(_thaw(x, scope), replaced) for x in atom.operands)
                found[atom] = _apply(atom.name, left, right)
        return found[atom]

    return _rebuilt(size, replaced)


def _rebuilt(size: SizeLike, replaced: Callable[[Atom], SizeLike]) -> SizeLike:
    """`size` with each atom replaced."""
    if type(size) is not SymInt:
        return size
    total: SizeLike = 0
    for monomial, coefficient in size.terms.items():
        term: SizeLike = coefficient
        for atom in monomial:
            term = term * replaced(atom)
        total = total + term
    return total


def _apply(function: str, left: SizeLike, right: SizeLike) -> SizeLike:
    if function == "floordiv":
        return left // right
    if function == "mod":
        return left % right
    return size_max(left, right) if function == "max" else size_min(left, right)


def evaluate(size: SizeLike, values: Mapping[str, int]) -> int:
    """Return the integer that a size is for these values of its symbols."""
    return _evaluated(size.terms.items(), values, {}) if type(size) is SymInt else size


def _evaluated(
    terms: Iterable[Any], values: Mapping[str, int], functions: dict[SizeFunction, int]
) -> int:
    """Return the sum of terms. `functions` keeps the values of functions of sizes met so far."""
    total = 0
    for monomial, coefficient in terms:
        for atom in monomial:
            if isinstance(atom, str):
                coefficient *= values[atom]
                continue
            if atom not in functions:
                left, right = (
                    x if type(x) is int else _evaluated(x, values, functions)
                    for x in atom.operands
                )
                functions[atom] = _FUNCTIONS[atom.name](left, right)
            coefficient *= functions[atom]
        total += coefficient
    return total


def same_size(a: SizeLike, b: SizeLike) -> bool:
    """Structural equality of two sizes; no guard is recorded."""
    if type(a) is SymInt:
        return a.same_as(b)
    return b.same_as(a) if type(b) is SymInt else a == b


def _concretizing(name: str) -> Any:
    def call(self: SymInt, *others: Any) -> Any:
        plain = [x.concretize() if type(x) is SymInt else x for x in others]
        return getattr(self.concretize(), name)(*plain)

    return call


for _name in ("and rand or ror xor rxor lshift rlshift rshift rrshift invert round floor "
              "ceil").split():
    setattr(SymInt, f"__{_name}__", _concretizing(f"__{_name}__"))
SymInt.__name__ = SymInt.__qualname__ = "int"  # in Python's error texts
