"""`torch._foreach_add` and its kin: on lists, what PyTorch gives, and captured as any op is."""

import pytest

import tracejit
from tracejit.core.ops import foreach

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

CALLS = """
add(x, y)
add(x, y, alpha=2)
add(x, 1.5)
add(x, [1, 2.5])
add(x, m.tensor(2.0))
sub(x, y, alpha=0.5)
mul(x, y)
mul(x, [2, 3])
mul(x, m.tensor(3.0))
div(y, x)
div(x, 3)
pow(x, 2)
pow(x, [2, 3])
pow(x, y)
pow(2.0, y)
maximum(x, y)
maximum(x, 2.5)
maximum(x, [1.5, 2.5])
minimum(x, other=y)
clamp_min(x, scalar=2.5)
clamp_max(x, y)
lerp(x, y, 0.25)
lerp(x, y, weight=0.5)
lerp(x, y, [x[0] / 10, x[1] / 10])
addcmul(x, y, x)
addcmul(x, y, x, value=-0.5)
addcmul(x, y, x, [2, 3])
addcdiv(x, y, x, 0.5)
addcdiv(x, y, x, scalars=[1, -1])
norm(x)
norm(x, 1)
norm(x, ord=float("inf"))
max(x)
clone(x)
neg(x)
sqrt(x)
rsqrt(x)
sign(x)
reciprocal(x)
exp(x)
log(x)
add([], 1)
add(x, [1])
add(x, y[:1])
add_(x, y, alpha=3)
add_(x, 2)
mul_(x, [2, 3])
div_(x, y)
lerp_(x, y, 0.75)
addcmul_(x, y, x, value=0.5)
addcdiv_(x, y, x)
addcdiv_(x, y, x, [1, 2])
maximum_(x, y)
minimum_(x, 2.5)
sqrt_(x)
neg_(x)
copy_(x, y)
zero_(x)
zero_([])
""".strip().splitlines()


def given(library):
    lists = {"x": [library.tensor([1.0, 2.0]), library.tensor([[3.0], [4.0]])],
             "y": [library.tensor([4.0, 1.5]), library.tensor([[0.5], [2.0]])]}
    return lists, {"m": library, **lists}


def shown(results, lists):
    return [[x.tolist() for x in results], {key: [x.tolist() for x in value]
                                            for key, value in lists.items()}]


@pytest.mark.parametrize("call", CALLS)
def test_it_is_what_pytorch_gives(call):
    def found(library):
        lists, names = given(library)
        try:
            result = eval(f"m._foreach_{call}", names)
        except RuntimeError as error:
            return str(error).split(",")[0].replace("as scalar list", "")
        same = isinstance(result, list) and result and result[0] is lists["x"][0]
        return type(result), same, shown(result, lists)

    ours, theirs = found(tracejit), found(torch)
    if isinstance(theirs, str):
        assert isinstance(ours, str)
        return
    assert ours[:2] == theirs[:2]
    flat = pytest.approx
    for a, b in zip(ours[2][0], theirs[2][0]):
        assert tracejit.tensor(a).flatten().tolist() == flat(torch.tensor(b).flatten().tolist())
    for key in ("x", "y"):
        for a, b in zip(ours[2][1][key], theirs[2][1][key]):
            assert tracejit.tensor(a).flatten().tolist() == flat(torch.tensor(b).flatten().tolist())


def test_every_one_is_pytorchs():
    assert all(hasattr(torch, name) for name in foreach.functions())
    lacking = {n for n in dir(torch) if n.startswith("_foreach_")} - set(foreach.functions())
    assert lacking <= {"_foreach_mm", "_foreach_powsum"}


def test_a_step_over_lists_is_one_program():
    def step(parameters, gradients, means):
        with tracejit.no_grad():
            tracejit._foreach_lerp_(means, gradients, 0.1)
            roots = tracejit._foreach_sqrt(tracejit._foreach_abs(means))
            tracejit._foreach_add_(roots, 1e-3)
            tracejit._foreach_addcdiv_(parameters, means, roots, value=-0.1)
        return tracejit._foreach_norm(parameters)

    def after(run, calls=3):
        parameters, gradients, means = ([tracejit.full((n, 2), start) for n in (1, 3)]
                                        for start in (1.0, 0.5, 0.0))
        norms = [run(parameters, gradients, means) for _ in range(calls)]
        return [x.tolist() for x in (*parameters, *means, *norms[-1])]

    captured = tracejit.script(step)
    for ours, plain in zip(after(captured), after(step)):
        assert tracejit.tensor(ours).allclose(tracejit.tensor(plain))
    assert captured.report().cache_misses == 1 and not captured.report().breaks
