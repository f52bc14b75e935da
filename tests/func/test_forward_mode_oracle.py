"""Forward mode: dual tensors, views and writes, custom Functions and errors, as in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import tracejit
from tracejit.autograd import forward_ad


def told(call: Any) -> Any:
    try:
        return call()
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error).__name__, str(error)


def shown(t: Any, x: Any) -> Any:
    """The primal and the tangent of a tensor, and whether they are on the tape."""
    primal, tangent = t.autograd.forward_ad.unpack_dual(x)
    return (rounded(primal), None if tangent is None else rounded(tangent), primal.requires_grad,
            tangent is not None and tangent.requires_grad)  # fmt: skip


def rounded(x: Any) -> tuple:
    numbers = [round(float(y), 4) + 0.0 for y in x.detach().flatten()]
    return str(x.dtype).rpartition(".")[2], tuple(x.shape), numbers


def given(t: Any) -> tuple:
    x, v = t.tensor([1.0, 2.0]), t.tensor([3.0, 4.0])
    return x, v, t.autograd.forward_ad.make_dual(x, v)


def of_ops(t: Any) -> list:
    x, v, d = given(t)
    w = t.tensor([[1.0, 2.0], [3.0, 4.0]])
    with t.no_grad():
        quiet = d * 2
    made = [
        d, x, d.sin(), quiet, d.clone(), d.view(1, 2), d.detach(), d.data, d > 0, d.long(),
        d.argmax(), d.max(0).values, t.where(d > 1, d, 0.0), d.round(), t.zeros_like(d),
        t.stack([d, x]), d.sum() * x, w @ d, t.nn.functional.linear(d, w, x), d.double().half(),
        t.cat([d, d])[1:3], d[:, None] * d, d.prod(), d.cumsum(0), d.softmax(0), d.pow(0),
        x.expand(2, 2) * d, t.linalg.norm(d), d.to(t.float64), d.var(), t.special.erf(d),
    ]  # fmt: skip
    return [shown(t, y) for y in made] + [d.requires_grad, d.is_leaf, repr(d * 2)]


def of_running_sums_and_places(t: Any) -> list:
    """Rules that are not linear where the gradient is 0; elements that go to one place."""
    x, v, d = given(t)
    at, z = t.tensor([1, 1]), t.zeros(3)
    complex_ = t.autograd.forward_ad.make_dual(t.complex(x, v), t.complex(v, x))
    put = z.index_put((at,), d)
    written = z.clone()
    written[at] = d
    made = [d.logcumsumexp(0), t.logcumsumexp(d * d, 0).sin(), z.scatter(0, at, d), put,
            written, z.put(at, d), z.index_copy(0, at, d), d.scatter(0, at[:1], x[:1]),
            d.scatter(0, at[:1], 5.0), z.scatter_add(0, at, d)]
    parts = [t.view_as_real(t.autograd.forward_ad.unpack_dual(complex_.logcumsumexp(0))[k])
             for k in (0, 1)]
    return [shown(t, y) for y in made] + [rounded(y) for y in parts]


def of_writes(t: Any) -> list:
    x, v, d = given(t)
    found, z = [], d * 1
    z.mul_(3)
    part = z[0]
    z.mul_(2)
    found += [shown(t, z), shown(t, part)]
    part.mul_(5)
    found += [shown(t, z), shown(t, part)]
    p = t.zeros(2)
    p[1] = d[0]
    found.append(shown(t, p))
    p.copy_(d)
    found.append(shown(t, p))
    p.fill_(1)
    found.append(shown(t, p))
    q = t.zeros(2, 3)
    row, column = q[0], q[:, 1]
    column.copy_(d)
    found += [shown(t, y) for y in (q, row, column, q.t(), q[1])]
    row.add_(1)
    q.mul_(t.tensor([2.0, 3.0, 4.0]))
    found += [shown(t, y) for y in (q, row, column)]
    other = t.autograd.forward_ad.make_dual(x, v)
    other.mul_(2)
    return [*found, x.tolist(), v.tolist(), shown(t, other)]


def with_gradients(t: Any) -> list:
    v = t.tensor([3.0, 4.0], requires_grad=True)
    w = t.tensor([5.0, 6.0], requires_grad=True)
    d = t.autograd.forward_ad.make_dual(w, v)
    y = d * d * d
    _, tangent = t.autograd.forward_ad.unpack_dual(y)
    found = [shown(t, y), shown(t, d)]
    found += [g.tolist() for g in t.autograd.grad(tangent.sum(), (w, v), create_graph=True)]
    (grad,) = t.autograd.grad(y.sum(), w)
    found += [shown(t, grad), shown(t, t.func.grad(lambda a: (a**3).sum())(d.detach() * 1))]
    found.append(shown(t, t.func.grad(lambda a: (a**3).sum())(d)))
    found.append(shown(t, t.vmap(lambda a: a**3 + a.sin())(d)))
    return found


def of_functions(t: Any) -> list:
    x, v, d = given(t)
    seen: list = []

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, scale: float) -> Any:
            ctx.save_for_forward(a, b)
            ctx.scale = scale
            return a * b * scale

        @staticmethod
        def jvp(ctx: Any, a: Any, b: Any, scale: Any) -> Any:
            one, other = ctx.saved_tensors
            seen.append([None if x is None else x.tolist() for x in (a, b, scale)])
            return (a * other + b * one) * ctx.scale

    class Both(t.autograd.Function):
        @staticmethod
        def forward(a: Any) -> Any:
            return a * 2, a * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factors = 2, 3

        @staticmethod
        def jvp(ctx: Any, a: Any) -> Any:
            return a * ctx.factors[0], a * ctx.factors[1]

    class InPlace(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            a.mul_(2)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def jvp(ctx: Any, a: Any) -> Any:
            return a.mul_(2)

    class Quiet(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.set_materialize_grads(False)
            return a * 2 + b

        @staticmethod
        def jvp(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a is None, b is None))
            return a * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2, grad

    class Without(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    def giving(made: Any) -> Any:
        class Wrong(t.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any) -> Any:
                return a * 2

            @staticmethod
            def jvp(ctx: Any, a: Any) -> Any:
                return made(a)

        return Wrong

    y = d * 1
    found = [shown(t, Product.apply(d, x, 2.0)), shown(t, Product.apply(d, d, 1.0))]
    found += [shown(t, z) for z in Both.apply(d)]
    found += [shown(t, InPlace.apply(y)), shown(t, y), shown(t, Quiet.apply(d, x))]
    found += [shown(t, Without.apply(x)), told(lambda: Without.apply(d))]
    wrong = [giving(made) for made in (lambda a: (a, a), lambda a: t.ones(5), lambda a: 3.0)]
    found += [told(lambda f=f: f.apply(d)) for f in wrong]
    with_grad = t.autograd.forward_ad.make_dual(x.clone().requires_grad_(), v)
    z = Quiet.apply(with_grad, x)
    found += [shown(t, z), t.autograd.grad(z.sum(), with_grad)[0].tolist()]
    return [*found, seen]


def of_errors(t: Any) -> list:
    x, v, d = given(t)
    make, unpack = t.autograd.forward_ad.make_dual, t.autograd.forward_ad.unpack_dual
    return [
        told(lambda: make(x, t.ones(3))), told(lambda: make(t.ones(2, dtype=t.int64), v)),
        told(lambda: make(x, t.ones(2, dtype=t.int64))), told(lambda: make(d, v)),
        told(t.autograd.forward_ad.enter_dual_level), unpack(x).tangent,
        told(lambda: t.autograd.forward_ad.exit_dual_level(level=3)), unpack(d)[1] is v,
    ]  # fmt: skip


PROGRAMS = [of_ops, of_running_sums_and_places, of_writes, with_gradients, of_functions, of_errors]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("program", PROGRAMS)
def test_dual_tensors_are_those_of_pytorch(program: Any) -> None:
    torch = pytest.importorskip("torch")

    def run(t: Any) -> list:
        with t.autograd.forward_ad.dual_level():
            return program(t)

    for mine, theirs in zip(run(tracejit), run(torch), strict=True):
        assert repr(mine) == repr(theirs).replace("torch.", "tracejit.")


def outside(t: Any) -> list:
    ad, x, v = t.autograd.forward_ad, t.ones(2), t.full((2,), 3.0)
    found = [told(lambda: ad.make_dual(x, v))]
    with ad.dual_level():
        y = ad.make_dual(x, v) * 2
    found += [shown(t, y), shown(t, x)]

    @ad.dual_level()
    def inside() -> Any:
        return shown(t, y), shown(t, ad.make_dual(x, v))

    found += [inside(), ad.enter_dual_level()]
    d = ad.make_dual(x, v)
    ad.exit_dual_level()
    return [*found, shown(t, d), repr(d)]


@pytest.mark.oracle
def test_levels_begin_and_end_as_in_pytorch() -> None:
    torch = pytest.importorskip("torch")
    assert repr(outside(tracejit)) == repr(outside(torch)).replace("torch.", "tracejit.")
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.exit_dual_level()


# -- captured --------------------------------------------------------------------------------------
def derivative(function: Any, x: Any, v: Any) -> Any:
    with forward_ad.dual_level():
        y = function(forward_ad.make_dual(x, v))
        return forward_ad.unpack_dual(y)


def smooth(x: Any) -> Any:
    y = x.sin() * x
    y[0] = y[1] * 2
    return (y @ y.t()).softmax(1).tanh()


@pytest.mark.parametrize("mode", ["graph", "compiled"])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_tangents_in_captured_functions_are_a_part_of_the_program(
    mode: str, requires_grad: bool
) -> None:
    run = tracejit.script(lambda x, v: tuple(derivative(smooth, x, v)), mode=mode)
    for size in (3, 4, 3):
        x, v = tracejit.randn(size, 2), tracejit.randn(size, 2)
        x.requires_grad_(requires_grad)
        for got, want in zip(run(x, v), derivative(smooth, x, v)):
            assert tracejit.allclose(got, want, atol=1e-5)
            if requires_grad:
                one, other = (tracejit.autograd.grad(z.sum(), x, retain_graph=True)[0]
                              for z in (got, want))  # fmt: skip
                assert tracejit.allclose(one, other, atol=1e-4)
    assert run.report().compiles == 1 and not run.report().breaks


def test_captured_functions_run_plainly_on_dual_tensors() -> None:
    layer = tracejit.nn.Linear(2, 2)
    run = tracejit.script(lambda x: layer(x).tanh().sum())
    x, v = tracejit.randn(3, 2), tracejit.randn(3, 2)
    run(x)
    got = derivative(run, x, v).tangent
    assert tracejit.allclose(got, tracejit.func.jvp(lambda x: layer(x).tanh().sum(), (x,), (v,))[1])
    assert tracejit.allclose(run(x), layer(x).tanh().sum())


def test_decisions_on_dual_tensors_end_the_segment() -> None:
    def chosen(x: Any, v: Any) -> Any:
        with forward_ad.dual_level():
            y = forward_ad.make_dual(x, v)
            z = y * 2 if y.sum() > 0 else y * y
            for _ in range(2):
                z = z + y
            return forward_ad.unpack_dual(z).tangent

    run = tracejit.script(chosen)
    for x in (tracejit.ones(2), -tracejit.ones(2), tracejit.ones(2)):
        assert run(x, tracejit.ones(2)).equal(chosen(x, tracejit.ones(2)))
    assert "if a tensor is true" in str(run.report().breaks)


def test_functions_are_mapped_over_tangents() -> None:
    """`jacfwd`, as a map over the tangents of one function."""
    x = tracejit.randn(3)

    def column(v: Any) -> Any:
        return derivative(lambda x: x.sin() * x.sum(), x, v).tangent

    rows = tracejit.vmap(column)(tracejit.eye(3))
    want = tracejit.func.jacfwd(lambda x: x.sin() * x.sum())(x)
    assert tracejit.allclose(rows.t(), want)
    captured = tracejit.script(lambda v: tracejit.vmap(column)(v))
    assert tracejit.allclose(captured(tracejit.eye(3)).t(), want)


def test_tangents_are_gone_with_their_tensors() -> None:
    with forward_ad.dual_level():
        d = forward_ad.make_dual(tracejit.ones(2), tracejit.ones(2))
        level = tracejit.core.eager.recording.active.level
        for _ in range(5):
            d = d * 2
        assert len(level.held) <= 2
        del d
        assert not level.held


class Wrong(tracejit.autograd.Function):
    """x ** 2 with a wrong tangent."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2 * ctx.saved_tensors[0]

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * 3 * ctx.saved_tensors[0]


def test_gradcheck_looks_at_tangents() -> None:
    check = tracejit.autograd.gradcheck
    x = tracejit.randn(2, 2, dtype=tracejit.float64, requires_grad=True)
    z = tracejit.randn(3, dtype=tracejit.complex128, requires_grad=True)
    assert check(lambda x: (x.sin(), x @ x), x, check_forward_ad=True, check_backward_ad=False)
    assert check(lambda z: (z * z, z.abs(), z.real * 2), z, check_forward_ad=True)
    assert check(lambda x, z: x.sum() * z, (x, z), check_forward_ad=True)
    assert check(Wrong.apply, x)
    assert not check(Wrong.apply, x, check_forward_ad=True, raise_exception=False)
    with pytest.raises(tracejit.autograd.GradcheckError, match="computed with forward mode"):
        check(Wrong.apply, x, check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(AssertionError, match="at least one of"):
        check(Wrong.apply, x, check_backward_ad=False)


def test_gradients_that_are_0_have_derivatives_of_their_own() -> None:
    x = tracejit.tensor([1.0, 2.0, 3.0], dtype=tracejit.float64, requires_grad=True)
    weights = tracejit.tensor([0.0, 1.0, 0.0], dtype=tracejit.float64, requires_grad=True)

    def gradient(x: Any, weights: Any) -> Any:
        return tracejit.autograd.grad(x.logcumsumexp(0), x, weights, create_graph=True)[0]

    assert tracejit.autograd.gradcheck(gradient, (x, weights))
