"""What programs over Python's protocols are made of, for `worlds.py`: operators, containers and
context managers of the user's, slots, `__getattr__`, properties, generators, enums, partials.

In: nothing. Out: `PROTOCOLS`, the tables that a program is drawn from.
"""

from __future__ import annotations

from tests.random_programs.world import World

SOURCE = '''
import collections, contextlib, enum, functools, math, operator, types, weakref
import numpy as np
import tracejit as tj

SETTINGS = types.SimpleNamespace(rate=2.0, deep=types.SimpleNamespace(n=1))
Pair = collections.namedtuple("Pair", "one two")

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

class Level(enum.IntEnum):
    LOW = 1
    HIGH = 3

class Vector:
    __slots__ = ("v", "n", "__weakref__")
    def __init__(self, v, n=1):
        self.v, self.n = v, n
    def __add__(self, other):
        return Vector(self.v + getattr(other, "v", other), self.n)
    def __radd__(self, other):
        return other + self.v
    def __mul__(self, k):
        return Vector(self.v * k, self.n + 1)
    def __iadd__(self, other):
        self.n += 1
        self.v = self.v + other
        return self
    def __eq__(self, other):
        return isinstance(other, Vector) and self.n == other.n
    __hash__ = None
    def __bool__(self):
        return self.n > 1
    def __len__(self):
        return self.n
    def __getitem__(self, k):
        return self.v * k
    def __setitem__(self, k, x):
        self.v = self.v + x * k
    def __contains__(self, k):
        return k < self.n
    def __iter__(self):
        for k in range(min(self.n, 4)):
            yield self.v + k
    def __call__(self, x, *more, scale=1):
        return x * self.n * scale + len(more)
    def __enter__(self):
        self.n += 1
        return self
    def __exit__(self, kind, *rest):
        self.n -= 1
        return kind is KeyError
    def __float__(self):
        return float(self.n)
    def __neg__(self):
        return Vector(-self.v, self.n)

class Loose:
    default = 1.5
    def __init__(self):
        self.__dict__["held"] = {}
        self._size = 1
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.__dict__["held"].get(name, self.default)
    def __setattr__(self, name, value):
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            self.__dict__["held"][name] = value
    @property
    def size(self):
        return self._size
    @size.setter
    def size(self, n):
        self._size = n * 2
    @functools.cached_property
    def costly(self):
        self._size += 1
        return self._size

class Table(dict):
    def __missing__(self, key):
        return len(key)

@contextlib.contextmanager
def scaled(settings, k):
    before, settings.rate = settings.rate, k
    try:
        yield settings
    finally:
        settings.rate = before

def counted(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        call.calls += 1
        return function(*args, **kwargs)
    call.calls = 0
    return call

@counted
def doubled(y):
    return y * 2

def rows(y, n=3):
    for k in range(n):
        y = y + k
        yield y

def nested(y, depth):
    return y if depth <= 0 else nested(y, depth - 1) * 0.5 + depth

def default_is_kept(y, seen=[]):
    seen.append(1)
    return y + len(seen)

def start():
    world = dict(vec=Vector(tj.ones(3)), loose=Loose(), table=Table(a=1.0),
                 pair=Pair(1.0, tj.ones(3)),
                 queue=collections.deque([1, 2], maxlen=4), groups=collections.defaultdict(list),
                 counts=collections.Counter("ab"), chosen={1, 2}, mode=Mode.FAST, level=Level.LOW,
                 part=functools.partial(operator.mul, 3), arr=np.arange(3.0),
                 ordered=collections.OrderedDict(a=1, b=2))
    return world, {"flag": True}, [tj.arange(3.0)]

def also():
    return dict(rate=SETTINGS.rate, n=SETTINGS.deep.n, calls=getattr(doubled, 'calls', None),
                kept=len(default_is_kept.__defaults__[0]), default=Loose.default)

def build():
    cell = []
    def program(x, vec, loose, table, pair, queue, groups, counts, chosen, mode, level, part, arr,
                ordered, flag=True):
        y, n, turns = x * 1, 1, 0
        def inner(z, k=n):
            nonlocal n
            n += 1
            return z + k
        add = lambda z: z + n
%s
        return %s
    return program, cell.append, cell
'''

STATEMENTS = (
    "y = (vec + y).v", "y = y + vec.v", "y = (vec * n).v + y", "vec += 1",
    "y = y + (1 if vec else 2)", "y = y + len(vec)", "y = y + vec[n]", "vec[n] = y",
    "y = y + (n in vec)", "y = vec(y, 1, scale=n)", "y = sum(vec, y)", "for v in vec: y = y + v",
    "y = y + float(vec)", "y = (-vec).v + y", "y = y + (vec == Vector(y))", "vec = Vector(y, n)",
    "first, *rest = [*vec, y]; y = first + len(rest)", "with vec as w: y = y + w.n",
    "with vec: y = y + table['q']['z']", "with scaled(SETTINGS, n) as s: y = y * s.rate",
    "y = y * SETTINGS.rate", "SETTINGS.rate = SETTINGS.rate + 1", "SETTINGS.deep.n += 1",
    "y = y + SETTINGS.deep.n", "y = y + loose.anything", "loose.anything = n", "loose.anything = y",
    "y = y + loose.size", "loose.size = n", "y = y + loose.costly",
    "loose.__dict__.pop('costly', None)", "y = y + getattr(loose, '_none', 4)",
    "y = y + table['abc']", "table['abc'] = n", "table['t'] = y", "y = y + table.get('t', 1)",
    "y = y + pair.one", "pair = pair._replace(one=n)", "one, two = pair; y = y + one * two",
    "y = y + pair[1]", "queue.append(n)", "queue.appendleft(y.sum())", "y = y + queue[0]",
    "queue.rotate(1)", "y = y + queue.pop() if queue else y", "groups['k'].append(y)",
    "y = y + len(groups['k'])", "groups[n] += [n]", "counts['a'] += n", "counts.update('bc')",
    "y = y + counts.most_common(1)[0][1]", "y = y + counts['zz']", "chosen.add(n)", "chosen -= {1}",
    "y = y + len(chosen)", "y = y + sum(chosen)", "y = y + (n in chosen)",
    "y = y + (2 if mode is Mode.FAST else 5)", "y = y * mode.value", "mode = Mode.SLOW",
    "y = y * level", "level = Level.HIGH", "y = y + (level > Level.LOW)", "y = part(y)",
    "part = functools.partial(operator.add, n)", "part = functools.partial(doubled)",
    "y = doubled(y)", "y = inner(y)", "y = inner(y, k=2)", "y = add(y)", "y = nested(y, n)",
    "y = default_is_kept(y)", "for v in rows(y): y = y + v", "y = list(rows(y, 2))[-1]",
    "y = next(rows(y))", "y = y + sum(v.sum() for v in rows(y, n))", "y = y + arr", "arr[0] = n",
    "y = y + float(arr.sum())", "y = y + tj.from_numpy(arr)", "arr += 1",
    "ordered.move_to_end('a')", "ordered['c'] = y", "y = y + [*ordered.values()][0]",
    "y = y + (list(ordered) == ['a', 'b'])", "n += 1", "if (m := int(y.shape[0])) > 2: y = y + m",
    "y = y if 0 < n < 3 else -y", "y = y * (flag or 2)", "y = y * (flag and n)",
    "y = y.max() if flag and y.sum() > 2 else y", "y = {'a': y}['a']", "y, n = y * n, n + 1",
    "y = (lambda z, *a, **k: z + len(a))(y, *queue)", "y = [*map(add, [y])][0]",
    "y = functools.reduce(lambda a, b: a + b, [y, y, n])", "y = max((y, y * 2), key=lambda z: n)",
    "y = tj.stack([z for z in (y, y + 1) if n > 0]).sum(0)",
    "y = sorted([(2, y), (1, y * 2)], key=lambda p: p[0])[0][1]",
    "match pair:\n    case Pair(one=1.0): y = y + 1\n    case Pair(one=o): y = y + o",
    "del table['abc']",
    "match n:\n    case 1 | 2: y = y * 2\n    case int(k) if k > 3: y = y - k\n    case _: pass",
    "cell.append(n)", "y = y + math.sqrt(n)", "y = y + math.floor(vec.n)",
    "y = y + round(float(n) / 3, 1)", "y = y + divmod(n, 2)[1]", "y = y + int(f'{n:03d}')",
    "y = y + len('%s' % mode)", "y = y + weakref.ref(vec)().n", "y = y + hash(n)",
    "y = y + bool(y.sum() > 3)", "y = y.reshape(*y.shape)", "y = y + y.numel() + y.dim()",
    "y = y[..., :2] if y.shape[-1] > 2 else y", "y = y + [*zip('ab', (n, n + 1))][1][1]",
)  # fmt: skip
TESTS = (
    "flag", "vec", "n in vec", "vec == Vector(x, n)", "mode is Mode.FAST", "level == 3",
    "n in chosen", "len(queue) > 2", "'abc' in table", "isinstance(pair, tuple)", "pair.one > 1",
    "y.sum() > 3", "(y > 1).any()", "not groups", "counts['a'] > 2", "callable(part)",
    "part.func is operator.mul", "loose.size > 2", "hasattr(loose, '_none')", "type(vec) is Vector",
    "SETTINGS.rate > 2", "next(iter(ordered)) == 'a'", "n > 1 and y.sum() > 0",
    "n > 1 or y.sum() > 0", "not y.sum() > 3", "0 < y.sum() < 9", "arr[0] > 0", "y.sum() in (3, 6)",
    "any(v > 2 for v in queue)",
)  # fmt: skip
LOOPS = (
    "for v in list(queue):", "for n in range(3):", "for key, v in [*ordered.items()]:",
    "while n < 4 and turns < 5:", "for v in rows(y):", "for i, v in enumerate(vec):",
    "for _ in range(6):", "for m in Mode:", "for a, b in zip(queue.copy(), 'xyz'):",
    "for v in reversed([1, n]):", "for v in y:",
)  # fmt: skip
RETURNS = (
    "y", "y, n", "(y, vec.v)", "{'y': y, **table}", "Pair(y, n)", "y, pair", "[*queue, y]",
    "loose.anything", "y, add(y)",
)  # fmt: skip
CHANGES = (
    "w['vec'].n = 3", "w['vec'].v = tj.arange(3.0)", "w['vec'] = s['Vector'](tj.zeros(3), 2)",
    "w['loose'].anything = 5", "w['loose'].size = 4", "s['Loose'].default = 2.5",
    "s['SETTINGS'].rate = 4.0", "s['SETTINGS'].rate = 4", "s['SETTINGS'].deep.n = 7",
    "s['SETTINGS'].deep = s['SETTINGS'].__class__(n=9)", "w['table']['abc'] = 7",
    "w['table'].clear()", "w['table']['t'] = tj.ones(3)", "w['pair'] = s['Pair'](2.0, tj.ones(3))",
    "w['pair'] = s['Pair'](tj.ones(3), 1)", "w['queue'].append(5)", "w['queue'].clear()",
    "w['groups'].clear()", "w['counts'].clear()", "w['chosen'].add(9)",
    "w['mode'] = s['Mode'].SLOW", "w['level'] = s['Level'].HIGH", "w['level'] = 2",
    "w['part'] = s['functools'].partial(s['operator'].add, 1)", "w['part'].keywords.update(q=1)",
    "w['arr'][:] = 2", "w['arr'] = np.ones(3, dtype=np.float32)", "w['ordered'].move_to_end('a')",
    "w['ordered']['a'] = 5", "s['doubled'].calls = 10", "s['doubled'].__wrapped__ = None",
    "s['doubled'] = lambda y: y", "s['nested'].__defaults__ = None",
    "s['rows'].__defaults__ = (1,)", "s['default_is_kept'].__defaults__[0].clear()",
    "s['Vector'].__len__ = lambda self: 7", "s['Vector'].__add__ = lambda self, other: self",
    "s['Vector'].__bool__ = lambda self: False",
    "s['Vector'].__iter__ = lambda self: iter([self.v])",
    "s['Vector'].__call__ = lambda self, x, *a, **k: x", "s['Loose'].size = 3",
    "s['Loose'].__getattr__ = lambda self, name: 8",
    "s['Table'].__missing__ = lambda self, key: 0.5", "a.update(flag=False)", "a.update(flag=0)",
    "x.append(tj.arange(5.0))", "x.append(tj.ones(2, 3))", "x.append(tj.arange(3))",
    "x.append(w['vec'].v)", "s['scaled'].__wrapped__.__defaults__ = None",
    "s['math'] = s['types'].SimpleNamespace(sqrt=abs, floor=abs)", "s['Mode'].FAST._value_ = 4",
    "w['loose'].__class__ = type('L', (s['Loose'],), {'default': 3.5})", "s['inner'] = 3",
    "s['sorted'] = lambda v, key: v",
)  # fmt: skip
RAISING = ("y = y + ordered['q']", "y = y + queue[3]", "assert flag", "y = y + loose._none")
PROTOCOLS = World(SOURCE, STATEMENTS, TESTS, LOOPS, RETURNS, CHANGES, RAISING)
