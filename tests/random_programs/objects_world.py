"""What programs over Python objects are made of, for `worlds.py`: an object with methods and
properties, a module, a dataclass, a dict, lists, globals, a closure.

In: nothing. Out: `OBJECTS`, the tables that a program is drawn from.
"""

from __future__ import annotations

from tests.random_programs.world import World

SOURCE = '''
import dataclasses
import tracejit as tj

SCALE = 2.0
NAMES = ["a", "b"]
TOTAL = tj.zeros(3)

def act(y):
    return y.relu()

def other(y):
    return y * 0.5 + SCALE

@dataclasses.dataclass
class Point:
    u: float = 1.0
    v: object = None

class Box:
    kind = "relu"
    made = 0

    def __init__(self, depth=1):
        self.scale = 1.5
        self.count = 0
        self.x = tj.arange(3.0)
        self.child = Box(depth - 1) if depth else None
        self.log = []

    @property
    def double(self):
        return self.scale * 2

    def step(self, y):
        self.count += 1
        return y * self.scale

    def keep(self, y):
        self.x = y
        return self

    def __call__(self, y, times=1):
        for _ in range(times):
            y = y + self.count
        return y

    def __len__(self):
        return len(self.log)

    @staticmethod
    def fixed(y):
        return y - 1

    @classmethod
    def make(cls, y):
        cls.made += 1
        return y + cls.made

class Net(tj.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = tj.nn.Parameter(tj.full((3,), 0.5))
        self.register_buffer("seen", tj.zeros(3))
        self.rate = 0.5

    def forward(self, y):
        if self.training:
            self.seen += 1
            y = y * self.rate
        return y * self.w.detach() + self.seen

def start():
    world = dict(box=Box(), table={"a": 1.0, "b": 2, "t": tj.ones(3)}, items=[1, 2.5, 3],
                 net=Net(), point=Point(), losses=[])
    return world, {"flag": True, "name": "a"}, [tj.arange(3.0)]

def also():
    return dict(SCALE=SCALE, TOTAL=TOTAL, NAMES=NAMES, kind=Box.kind,
                made=getattr(Box, "made", None))

def build():
    cell = 1.0
    seen = []
    def program(x, box, table, items, net, point, losses, flag=True, name="a", *rest, **options):
        nonlocal cell
        global SCALE
        y = x * 1
        n, turns = 1, 0
%s
        return %s
    def change(value):
        nonlocal cell
        cell = value
    return program, change, seen
'''

STATEMENTS = (
    "y = y * box.scale", "y = y + table['a']", "y = y + table.get('b', 0.25)", "y = y * len(items)",
    "y = y + sum(v for v in items if isinstance(v, (int, float)))", "y = act(y)", "y = y * SCALE",
    "y = y + cell", "y = box.step(y)", "y = getattr(box, 'step')(y)", "y = y + box.double",
    "y = y + box.x", "y = box(y, times=n)", "y = box.fixed(y)", "y = Box.make(y)", "y = net(y)",
    "y = y + point.u", "y = y + TOTAL", "y = y * (1 if flag else 2)", "y = y + len(NAMES)",
    "y = y + table.get(name, 3)", "y = y + len(rest)", "y = y + options.get('k', 0)",
    "y = y + max([v for v in items if not isinstance(v, tj.Tensor)], default=0)",
    "y = y + len(box)", "y = y + n", "y = y + (box.child.count if box.child else 7)",
    "first, *others = [*items, 0]; y = y + first * len(others)", "y = y + table['t']",
    "y = tj.stack([y + v for v in items] or [y]).sum(0)", "y = y.to(table['t'].dtype)",
    "y = y + len(f'{name}{n}{box.kind}')", "y = y + sum(map(len, NAMES))", "y = y + net.rate",
    "y = y + getattr(box, 'extra', 0)", "y = y + vars(box).get('extra', 1)", "y = y + len(seen)",
    "y = y + sum(1 for _ in zip(items, NAMES))", "y = y + [*table].index('a')",
    "y = y * net.seen.sum()", "box.count += 1", "box.scale = box.scale * 1.5", "box.scale = n",
    "table['n'] = table.get('n', 0) + 1", "items.append(box.count)", "items.append(y)",
    "items and items.pop()", "items.insert(0, n)", "table.pop('b', None)", "table.update(c=n)",
    "table['b'] = y", "table['t'] = y.detach()", "table['t'] += 1", "box.x = y", "box.x += 1",
    "box.x = box.x + 1", "setattr(box, 'extra', n)", "box.__dict__.pop('extra', None)",
    "SCALE = SCALE + 1", "cell = cell * 2", "cell = y.sum()", "box.child = None",
    "box.child = Box(0)", "box.kind = 'tanh'", "Box.kind = name", "items[:] = items[1:]",
    "items.reverse()", "table.setdefault('s', y)", "seen.append(n)", "box.log.append(y.sum())",
    "losses.append(y.sum().item())", "losses.append(float(y.mean()))", "net.rate = net.rate + 0.5",
    "net.train(not net.training)", "net.w.data.mul_(2)", "n = n + 1", "point.u = point.u + 1",
    "point.v = y", "TOTAL.add_(y)", "NAMES.append(name)", "n = len(items)", "n = int(y.shape[0])",
    "n = box.count", "flag = not flag", "name = 'b' if name == 'a' else 'a'", "x.add_(1)",
    "x[0] = n", "y.mul_(2)", "y = box.keep(y).x", "items += [n]", "items = list(items)",
    "table = dict(table)", "table = {**table, 'a': n}", "box = box.child or box",
    "point = Point(n, y)", "n = int(y.sum()) % 3", "net.seen = net.seen * 2", "net.seen.zero_()",
    "box.log.clear()", "items.extend(v for v in (n, 0.5))", "y = items[-1] * y if items else y",
    "del items[:1]", "box.step = box.fixed", "vars(box).pop('step', None)", "Box.made = n",
    "print(end='')",
)  # fmt: skip
TESTS = (
    "flag", "box.count > 1", "'b' in table", "'n' not in table", "items", "len(items) > 3",
    "box.child is None", "box.kind == 'relu'", "hasattr(box, 'extra')", "net.training", "n > 1",
    "isinstance(table.get('b'), tj.Tensor)", "y.sum() > 3", "(y > 0).all()", "cell > 1.5",
    "table['t'] is box.x", "point.v is None", "y.shape[0] > 3", "y.dtype == tj.float32", "rest",
    "SCALE > 2", "name in table", "box.x.shape == y.shape", "losses and losses[-1] > 1",
    "tj.is_grad_enabled()", "callable(getattr(box, name, None))", "type(box.scale) is float",
)  # fmt: skip
LOOPS = (
    "for v in items[:4]:", "for n in range(3):", "for key in sorted(table, key=str):",
    "for key, v in list(table.items()):", "while n < 4 and turns < 5:",
    "for i, v in enumerate(NAMES[:4]):", "for _ in range(box.count % 4):", "for row in y:",
)  # fmt: skip
RETURNS = (
    "y", "y, n", "y, box.x, table", "(y, items)", "{'y': y, 'b': table.get('b')}", "box, y",
    "y, cell, SCALE", "y, point, net.seen",
)  # fmt: skip
CHANGES = (
    "w['box'].scale = 3", "w['box'].scale = 0.5", "w['box'].scale = True", "w['box'].count = 5",
    "w['box'].scale = tj.tensor(2.0)", "w['box'].scale = np.float32(1.5)",
    "w['table'].pop('b', None)", "w['table']['b'] = 4", "w['table']['b'] = tj.ones(3)",
    "w['table']['t'] = w['box'].x", "w['table']['t'] = tj.ones(3, dtype=tj.float64)",
    "w['items'].append(4)", "w['items'].clear()", "w['items'][:] = [1.0, 2]",
    "w['items'][:] = [True, 2.5, 3]", "s['SCALE'] = 5.0", "s['SCALE'] = 3", "s['act'] = s['other']",
    "s['act'] = tj.sigmoid", "s['act'] = s['Net']()", "change(4.0)", "change(2)",
    "change(tj.tensor(1.0))", "w['box'].extra = 2", "w['box'].child = s['Box'](0)",
    "w['net'].eval()", "w['net'].train()", "w['net'].rate = 1",
    "w['net'].w = tj.nn.Parameter(tj.ones(3))", "w['net'].seen = tj.ones(3)", "w['point'].u = 3",
    "w['point'].v = w['box'].x", "s['TOTAL'] = tj.ones(3)", "s['NAMES'].append('c')",
    "s['NAMES'] = ['a']", "s['Box'].kind = 'gelu'", "del s['Box'].made",
    "s['Box'].step = lambda self, y: y + 10", "w['box'] = s['Box']()",
    "w['box'].step = lambda y: y - 10", "s['Net'].forward = lambda self, y: y + self.rate",
    "a.update(flag=False)", "a.update(name='b')", "a.update(k=2)", "a.update(k=tj.ones(3))",
    "a.pop('k', None)", "w['box'].x = w['table']['t']", "w['box'].x.add_(1)",
    "w['box'].log = [1, 2]", "w['net'].register_forward_hook(lambda m, i, o: o * 2)",
    "w['items'].append(w['box'].x)",
    "w['box'].__class__ = type('Sub', (s['Box'],), {'double': 9.0})", "w['net'].w.data.fill_(2)",
    "w['table'] = dict(reversed(w['table'].items()))", "w['losses'].clear()", "w['box'].kind = 'a'",
    "s['Box'].double = property(lambda self: 7.0)", "x.append(tj.arange(5.0))",
    "x.append(x[-1].double())", "x.append(w['box'].x)", "x.append(w['table']['t'])",
    "x.append(tj.arange(3))", "x.append(x[-1].clone())", "s['Point'].u = 5.0",
    "w['point'] = s['Point'](2.0)", "s['len'] = lambda v: 3", "a.update(x_k=[1])",
)  # fmt: skip
RAISING = ("y = y + table['q']", "y = y + items[2]", "y = y + box.extra", "assert flag")
OBJECTS = World(SOURCE, STATEMENTS, TESTS, LOOPS, RETURNS, CHANGES, RAISING)
