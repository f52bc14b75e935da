"""Views made in no_grad or inference mode, and pieces of what was split, that are written, or used
after their memory was written: PyTorch's gradient, or PyTorch's error."""

import itertools

import pytest

import tracejit

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.oracle

MODES = {"grad": "enable_grad", "no_grad": "no_grad", "inference": "inference_mode"}
WHOLES = {
    "leaf": lambda t: t.ones(4, requires_grad=True),
    "result": lambda t: t.ones(4, requires_grad=True) * 1,
    "plain": lambda t: t.ones(4),
}
VIEWS = {
    "part": lambda t, x: x[:3][:2],
    "piece": lambda t, x: x.split(2)[1],
    "row": lambda t, x: x.view(2, 2).unbind()[1],
    "part of a piece": lambda t, x: x.chunk(2)[0][:1],
}
WRITES = {
    "a number": lambda t, x, w: x.mul_(2),
    "a weight": lambda t, x, w: x.mul_(w),
    "one place": lambda t, x, w: x.__setitem__(0, w),
    "zeros": lambda t, x, w: x.zero_(),
    "nothing": lambda t, x, w: x,
}
USES = {
    "square": lambda t, x: (x * x).sum(),
    "compared": lambda t, x: (x > 1).sum(),
    "detached": lambda t, x: x.detach().sum(),
    "a part": lambda t, x: x[:1].sum(),
    "flags": lambda t, x: t.tensor([x.requires_grad, x.is_leaf]),
    "printed": lambda t, x: t.tensor(["<Invalid>" in repr(x), "requires" in repr(x)]),
    "numbers": lambda t, x: t.tensor(x.tolist()),
}


def parts(t, viewed, written, view, write, target):
    def make(whole):
        with getattr(t, MODES[viewed])():
            return VIEWS[view](t, whole)

    def change(whole, seen, w):
        with getattr(t, MODES[written])():
            WRITES[write](t, whole if target == "whole" else seen, w)

    return make, change


def story(t, whole, w, do):
    told = []
    try:
        y = do(whole, w)
        told.append((y.tolist(), y.requires_grad))
        if y.requires_grad:
            y.backward()
    except RuntimeError as error:
        told.append(str(error).replace("tracejit", "torch"))
    told.append(None if w.grad is None else w.grad.tolist())
    if whole.is_leaf:
        told.append(None if whole.grad is None else whole.grad.tolist())
    return told, whole.tolist(), whole._version


def told(t, whole, *how, use="square", using="grad"):
    make, change = parts(t, *how)

    def do(whole, w):
        seen = make(whole)
        change(whole, seen, w)
        with getattr(t, MODES[using])():
            return USES[use](t, seen)

    return story(t, WHOLES[whole](t), t.tensor(3.0, requires_grad=True), do)


@pytest.mark.parametrize("viewed", MODES)
@pytest.mark.parametrize("written", MODES)
@pytest.mark.parametrize("view", VIEWS)
def test_written_and_used(viewed, written, view):
    for whole, write, target in itertools.product(WHOLES, WRITES, ("whole", "view")):
        how = whole, viewed, written, view, write, target
        assert told(tracejit, *how) == told(torch, *how), how


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("using", ["grad", "no_grad"])
def test_uses(use, using):
    for whole, viewed, view, write in itertools.product(WHOLES, MODES, VIEWS, WRITES):
        how = whole, viewed, "no_grad", view, write, "whole"
        assert told(tracejit, *how, use=use, using=using) == (
            told(torch, *how, use=use, using=using)), how


CASES = [
    ("leaf", "no_grad", "grad", "part", "a weight", "view"),
    ("leaf", "no_grad", "no_grad", "part", "a weight", "whole"),
    ("leaf", "inference", "no_grad", "part", "zeros", "view"),
    ("result", "no_grad", "grad", "part of a piece", "a number", "whole"),
    ("result", "grad", "grad", "piece", "a weight", "whole"),
    ("result", "no_grad", "grad", "part", "nothing", "view"),
    ("plain", "grad", "grad", "row", "a weight", "whole"),
    ("plain", "no_grad", "no_grad", "row", "a weight", "whole"),
]


@pytest.mark.parametrize("capture", [tracejit.script, tracejit.trace], ids=["script", "trace"])
@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_captured(case, capture):
    whole, *how = case
    make, change = parts(tracejit, *how)

    def changed(whole, w):
        seen = make(whole)
        change(whole, seen, w)
        return seen

    def used(whole, seen, w):
        change(whole, seen, w)
        return (seen * seen).sum()

    def outside(seen):
        return (seen * seen).sum()

    makes, changes, use, rest = map(capture, (make, changed, outside, used))
    whole_call = capture(lambda whole, w: outside(changed(whole, w)))
    ways = {
        "all of it": whole_call,
        "made and written": lambda whole, w: outside(changes(whole, w)),
        "used": lambda whole, w: use(changed(whole, w)),
        "written and used": lambda whole, w: rest(whole, makes(whole), w),
    }
    for way, do in ways.items():
        for w in (3.0, 4.0):
            found = [story(t, WHOLES[case[0]](t), t.tensor(w, requires_grad=True), done)
                     for t, done in ((tracejit, do), (torch, plain(case)))]
            assert found[0] == found[1], way


def plain(case):
    make, change = parts(torch, *case[1:])

    def do(whole, w):
        seen = make(whole)
        change(whole, seen, w)
        return (seen * seen).sum()

    return do


def test_a_program_for_a_view_serves_none_whose_memory_was_written():
    @tracejit.script
    def square(x):
        return (x * x).sum()

    whole = tracejit.ones(4, requires_grad=True)
    with tracejit.no_grad():
        seen = whole[:2]
    assert square(seen).requires_grad and square(seen).requires_grad
    with tracejit.no_grad():
        whole.mul_(2)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="^A view was created in no_grad mode and its base"):
            square(seen)


SHAPED = {"t_": (), "unsqueeze_": (0,), "squeeze_": ()}


@pytest.mark.parametrize("name", SHAPED)
@pytest.mark.parametrize("mode", MODES)
def test_views_that_get_another_shape_in_place_keep_their_history(name, mode):
    def run(t, start):
        leaf = t.ones(2, 3, requires_grad=True)
        x = start(leaf)
        with getattr(t, MODES[mode])():
            getattr(x, name)(*SHAPED[name])
        (x * x).sum().backward()
        return tuple(x.shape), x.requires_grad, x.is_leaf, leaf.grad.tolist()

    with tracejit.no_grad():  # of what was lost
        lost = tracejit.ones(2, 3, requires_grad=True).split(1)[0].mul_(2)
        assert getattr(lost, name)(*SHAPED[name]) is lost
    for start in (lambda x: (x * 1)[:1], lambda x: x[:1]) if mode != "grad" else (
            lambda x: (x * 1)[:1],):
        assert run(tracejit, start) == run(torch, start)


def test_detached_in_inference_mode():
    def run(t):
        leaf = t.ones(2, requires_grad=True)
        result = leaf * 1
        with t.inference_mode():
            made = t.ones(2).detach_()
            same = leaf.detach_() is leaf, result.detach_() is result, made.is_inference()
        return same, leaf.requires_grad, result.requires_grad, result.is_leaf

    assert run(tracejit) == run(torch)


@pytest.mark.parametrize("sizes", [((2,), (3,)), ((2, 3), (2, 2)), ((3,), (2, 3))], ids=str)
def test_copies_of_what_does_not_fit(sizes):
    def run(t):
        with pytest.raises(RuntimeError) as caught:
            t.zeros(sizes[0]).copy_(t.ones(sizes[1]))
        return str(caught.value)

    assert run(tracejit) == run(torch)


@pytest.mark.parametrize("made", ["no_grad", "grad"])
@pytest.mark.parametrize("write", ["no_grad", "nothing", "off again"])
def test_views_made_before_their_base_required_grad(made, write):
    def run(t):
        flat = t.zeros(4)
        with getattr(t, MODES[made])():
            first, second = flat[:2], flat.view(2, 2)[1]
        flat.requires_grad_()
        if write == "off again":
            flat.requires_grad_(False)
        if write != "nothing":
            with t.no_grad():
                flat.add_(2.0)
        told = [first.requires_grad, second.requires_grad]
        try:
            y = (first * second).sum()
            told.append(y.requires_grad)
            if y.requires_grad:
                y.backward()
        except RuntimeError as error:
            told.append(str(error))
        return told, None if flat.grad is None else flat.grad.tolist()

    assert run(tracejit) == run(torch)


def test_custom_functions_of_views_made_in_no_grad():
    def run(t):
        class Double(t.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                told.append(ctx.needs_input_grad)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        told = []
        leaf = t.ones(4, requires_grad=True)
        with t.no_grad():
            seen = leaf[:2]
        y = Double.apply(seen)
        told.append(y.requires_grad)
        y.sum().backward()
        with t.no_grad():
            leaf.add_(1)
        with pytest.raises(RuntimeError) as caught:
            Double.apply(seen)
        return told, leaf.grad, str(caught.value)

    assert run(tracejit) == run(torch)


def test_gradients_of_another_shape_are_refused():
    def run(t):
        leaf = t.ones(2, 3, requires_grad=True)
        x = leaf * 2
        with t.no_grad():
            x.t_()
        with pytest.raises(RuntimeError):
            x.sum().backward()
        return leaf.grad

    assert run(tracejit) is run(torch) is None


@pytest.mark.parametrize("allow_unused", [True, False])
def test_gradients_of_a_view_made_in_no_grad_mode(allow_unused):
    """It says that it needs gradients, and has no part in the graph."""
    told = []
    for t in (tracejit, torch):
        x = t.ones(2, requires_grad=True)
        with t.no_grad():
            view = x[:1]
        total = (x * 2).sum() + (view * 3).sum()
        try:
            own, of_view = t.autograd.grad(total, [x, view], allow_unused=allow_unused)
            told.append((own.tolist(), of_view))
        except RuntimeError as error:
            told.append(str(error))
    assert told[0] == told[1]


@pytest.mark.parametrize("shape, times", list(itertools.product(
    [(0,), (2, 0), (2, 3)], [(1,), (2,), (0,)])))  # fmt: skip
def test_repetitions_are_no_views(shape, times):
    told = []
    for t in (tracejit, torch):
        x = t.ones(shape, requires_grad=True)
        times = times + (1,) * (len(shape) - len(times))
        with t.no_grad():
            made = [x.repeat(times), x.tile(times)]
        told.append([(y.requires_grad, y._is_view(), tuple(y.shape)) for y in made])
    assert told[0] == told[1]
