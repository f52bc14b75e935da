"""Statements with an effect on Python objects, in a side that may not be taken and in loops.

Each is put where a trial records it: what it changes must be what plain calls change.
"""

from __future__ import annotations

import contextlib
import linecache
import random

import numpy as np
import pytest

import tracejit as tj

OF_MODULES = """net.train(False)
net.train(not net.training)
net.l.eval()
net.bn.eval()
net.requires_grad_(False)
net.l.weight.requires_grad = False
net.register_buffer("q", y)
net.register_parameter("q", None)
net.add_module("q", nn.ReLU())
net.q = nn.ReLU()
net.register_forward_hook(hook)
net.zero_grad()
net.l.weight.grad = tj.ones(3, 3)
net.double()
net.apply(init)
net.load_state_dict(sd)
nn.init.ones_(net.l.weight)
net.bn(y[None].expand(4, 3) * 1)
del net.h
setattr(net, "h", 3)
net.__dict__["h"] = 4
net.b += 1
net.b = net.b + 1
net._buffers["b"] = y * 2
net.bn.momentum = 0.5
net.bn.reset_running_stats()
seq.append(nn.ReLU())
seq[0] = nn.Tanh()
del seq[0]
seq[0].inplace = True
ml.append(nn.ReLU())
md["k"] = nn.ReLU()
pl.append(nn.Parameter(tj.ones(2)))
nn.utils.clip_grad_norm_(net.parameters(), 0.1)
hasattr(net.l, "parametrizations") or nn.utils.parametrizations.weight_norm(net.l)
nn.utils.vector_to_parameters(tj.ones(12), net.l.parameters())""".splitlines()

OF_TRAINING = """opt.zero_grad()
opt.step()
opt.add_param_group({"params": [nn.Parameter(tj.ones(2))]})
opt.param_groups[0]["lr"] = 0.5
opt.load_state_dict(osd)
opt.state.clear()
sched.step()
scaler.update(0.5)
ema.update_parameters(net)
tj.set_default_dtype(tj.float64)
tj.set_grad_enabled(False)
gen.manual_seed(4)
tj.rand(2, generator=gen)
x.custom = 3
x.data = tj.zeros(3)
x.resize_(6)
x.mul_(2)""".splitlines()

OF_PYTHON = """next(it)
list(zip(it, [1]))
dict(zip("a", it))
tuple(filter(lst.append, [1, 2]))
list(map(lst.append, [1, 2]))
any(map(st.add, [1, 2]))
list(itertools.starmap(lst.insert, [(0, 1)]))
collections.deque(map(lst.append, [1]), maxlen=0)
functools.partial(lst.append, 3)()
functools.reduce(operator.iadd, [lst, [1]])
operator.methodcaller("append", 3)(lst)
operator.setitem(d, "k", 2)
lst.sort(reverse=True)
lst += [1]
lst[0] = 7
del lst[:1]
list.append(lst, 4)
list.sort(lst)
heapq.heappush(lst, 0)
bisect.insort(lst, 2)
random.shuffle(lst)
rng.shuffle(lst)
rng.random()
np.random.rand()
np.add(arr, 1, out=arr)
arr.fill(3)
dq.rotate(1)
cnt.update("ab")
d.setdefault("k", 3)
dict.update(d, k=3)
d |= {"z": 1}
st |= {4}
set.add(st, 4)
buf.write("q")
obj.m()
obj.z += 1
vars(obj)["z"] = 3
object.__setattr__(obj, "z", 3)
type(obj).z = 3
[lst.pop() for _ in range(1)]
lru(len(lst))""".splitlines()

HEAD = """
import bisect, collections, functools, heapq, io, itertools, operator, random
import numpy as np
import tracejit as tj
from tracejit import nn, optim

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l, self.bn, self.h = nn.Linear(3, 3), nn.BatchNorm1d(3), None
        self.register_buffer("b", tj.zeros(3))

class Obj:
    z = 0
    def m(self):
        self.z += 1

def hook(module, given, result):
    return result

def init(module):
    if hasattr(module, "weight"):
        module.weight.data.fill_(2.0)

calls = []
@functools.lru_cache
def lru(k):
    calls.append(k)
    return k

def world():
    net, other = Net(), Net()
    for p in net.parameters():
        p.data.fill_(1.0)
        p.grad = tj.ones_like(p)
    for p in other.parameters():
        p.data.fill_(0.0)
    scaler = tj.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(tj.ones(()))
    opt = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    return dict(
        net=net, opt=opt, sched=optim.lr_scheduler.StepLR(opt, 1), osd=opt.state_dict(),
        sd={k: v * 0 + 2 for k, v in net.state_dict().items()}, gen=tj.Generator().manual_seed(1),
        seq=nn.Sequential(nn.ReLU(), nn.Sigmoid()), ml=nn.ModuleList(), md=nn.ModuleDict(),
        pl=nn.ParameterList(), scaler=scaler,
        ema=optim.swa_utils.AveragedModel(other), d={}, cnt=collections.Counter(), st=set(),
        dq=collections.deque([1, 2, 3]), it=iter(range(99)), rng=random.Random(1), lst=[3, 1, 2],
        buf=io.StringIO(), obj=Obj(), arr=np.zeros(3))

def f(x, net, opt, sched, osd, sd, gen, seq, ml, md, pl, scaler, ema, d, cnt, st, dq, it, rng, lst,
      buf, obj, arr):
    y = x * 1
"""  # fmt: skip
FORMS = {
    "side": """    if y.sum() > 3:
        {}
        y = y + 1
    return y * 2
""",
    "loop": """    for _ in range(6):
        y = y + 1
        if y.sum() > 15:
            break
        {}
    return y * 2
""",
    "while": """    while y.sum() > 6:
        y = y - 1
        {}
    return y * 2
""",
    "finally": """    for row in x * 1:
        try:
            {0}
        finally:
            {0}
    return y * 2
""",
    "except": """    if y.sum() > 4:
        try:
            {0}
            y = y[7]
        except:
            {0}
    return y * 2
""",
}


def _shown(x):
    return None if x is None else (str(x.dtype), x.requires_grad, x.tolist())


def _picture(world, x, space):
    net, opt = world["net"], world["opt"]
    return [
        [m.training for m in net.modules()], [n for n, _ in net.named_modules()], repr(net),
        {n: (_shown(p), _shown(p.grad)) for n, p in net.named_parameters()}, list(net._parameters),
        {n: _shown(b) for n, b in net.named_buffers()}, len(net._forward_hooks), net.bn.momentum,
        net.__dict__.get("h"), [(g["lr"], len(g["params"])) for g in opt.param_groups],
        [_shown(v["momentum_buffer"]) for v in opt.state.values()], world["sched"].last_epoch,
        tj.rand(1, generator=world["gen"]).item(), tj.get_default_dtype(), tj.is_grad_enabled(),
        *[repr(world[n]) for n in ("seq", "ml", "md", "pl", "cnt", "st", "dq", "lst", "arr")],
        world["seq"][0].__dict__.get("inplace") if len(world["seq"]) else None,
        world["scaler"].get_scale(), [_shown(p) for p in world["ema"].parameters()],
        sorted(world["d"]), next(world["it"]), world["rng"].random(), world["buf"].getvalue(),
        world["obj"].z, vars(world["obj"]).copy(), list(space["calls"]), np.random.rand(),
        random.random(), _shown(x.detach()), getattr(x, "custom", None),
    ]  # fmt: skip


def _calls(text, name, jit):
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"__name__": "effects"}
    exec(compile(text, name, "exec"), space)
    random.seed(1)
    np.random.seed(1)
    f, world, found = jit(space["f"]), space["world"](), []
    try:
        for scale in (1, 3, 1, 1, 3, 0):
            x = tj.arange(3.0) * scale
            result = None
            with contextlib.suppress(IndexError, ValueError, AttributeError):
                result = f(x, **world)
            found.append(repr((result if result is None else result.tolist(),
                               _picture(world, x, space))))  # fmt: skip
    finally:
        tj.set_default_dtype(tj.float32)
        tj.set_grad_enabled(True)
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("effect", [*OF_MODULES, *OF_TRAINING, *OF_PYTHON])
@pytest.mark.filterwarnings("ignore")
def test_an_effect_happens_where_the_plain_function_has_it(effect, form):
    text = HEAD + FORMS[form].format(effect)
    expected = _calls(text, f"<{form} plain: {effect}>", lambda f: f)
    assert _calls(text, f"<{form}: {effect}>", lambda f: tj.script(f, mode="graph")) == expected


class Counting:
    asked = 0

    @property
    def one(self):
        self.asked += 1
        return 1.0


def test_what_runs_when_a_trial_is_given_up_does_no_more():
    def lasts(x, counting):
        if x.sum() > 3:
            try:
                x = x + counting.one
            finally:
                x = x + counting.one
        return x

    def catches(x, counting):
        if x.sum() > 3:
            try:
                x = x + counting.one
            except:  # noqa: E722
                x = x + counting.one
        return x

    for function in (lasts, catches):
        jitted = tj.script(function, mode="graph")
        for value in (0.0, 2.0, 0.0):
            plain, captured = Counting(), Counting()
            expected = function(tj.full((3,), value), plain)
            assert jitted(tj.full((3,), value), captured).tolist() == expected.tolist()
            assert captured.asked == plain.asked
