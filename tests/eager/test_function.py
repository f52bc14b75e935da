"""Custom Functions against torch, and gradcheck on right and wrong gradients."""

import gc
import weakref

import pytest

import tracejit
from tests.eager.programs import check

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def exponential(m):
    class Exp(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    return Exp


def leaf(m, *values):
    return m.tensor(list(values), requires_grad=True)


@program
def saved_output(m):
    x = leaf(m, 0.0, 1.0)
    y = exponential(m).apply(x)
    y.sum().backward()
    return y, x.grad, y.grad_fn.name(), type(y.grad_fn).__name__


@program
def double_backward(m):
    x = leaf(m, 0.0, 1.0)
    y = exponential(m).apply(x)
    (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = m.autograd.grad((g * g).sum(), x)
    return g, h


@program
def freed(m):
    x = leaf(m, 0.0)
    y = exponential(m).apply(x)
    y.sum().backward()
    y.sum().backward()


@program
def saved_then_modified(m):
    x = leaf(m, 0.0)
    y = exponential(m).apply(x)
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return str(error)[:80]


@program
def several_inputs_and_outputs(m):
    seen = []

    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y, flag=None):
            ctx.k = k
            ctx.save_for_backward(x, y)
            ctx.mark_non_differentiable(i := (x > y))
            return x * k, y * k, i, "text"

        @staticmethod
        def backward(ctx, gx, gy, gi, gt):
            seen.append((ctx.needs_input_grad, gy.tolist(), gt))
            return gx * ctx.k, None, gy * ctx.k, None

    x, y = leaf(m, 1.0, 2.0), m.ones(2)
    a, b, i, text = Both.apply(x, 3.0, y, True)
    a.sum().backward()
    return (
        x.grad,
        a.requires_grad,
        b.requires_grad,
        i.requires_grad,
        text,
        y.grad is None,
        seen[0][:2],
    )


@program
def without_materializing(m):
    seen = []

    class Two(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append((a is None, b is None))
            return b * 3

    x = leaf(m, 1.0)
    Two.apply(x)[1].sum().backward()
    return seen, x.grad


@program
def setup_context(m):
    class Square(m.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.k = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x * ctx.k, None

    x = leaf(m, 3.0)
    Square.apply(x, 2.0).sum().backward()
    return x.grad


@program
def dirty(m):
    class Double(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(m, 1.0, 2.0)
    y = x * 1
    z = Double.apply(y)
    (z * z).sum().backward()
    try:
        Double.apply(leaf(m, 1.0))
    except RuntimeError as error:
        return z is y, y, x.grad, y._version, str(error)


@program
def identity(m):
    class Same(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return -grad

    x = leaf(m, 1.0)
    y = Same.apply(x)
    y.sum().backward()
    return x.grad, y is x, y.is_leaf, x.is_leaf


@program
def once(m):
    class Once(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @m.autograd.function.once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = leaf(m, 1.0)
    Once.apply(x).sum().backward()
    (g,) = m.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    try:
        g.sum().backward()
    except RuntimeError as error:
        return x.grad, str(error)


@program
def wrong_gradients(m):
    found = []
    for result in (
        lambda g: (g, g),
        lambda g: g.reshape(1, 2).expand(3, 2).reshape(6),
        lambda g: g[:1].sum(),
    ):

        class Wrong(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad, result=result):
                return result(grad)

        try:
            Wrong.apply(leaf(m, 1.0, 2.0)).sum().backward()
            found.append("no error")
        except RuntimeError as error:
            found.append(str(error))
    return found[:2]


@program
def under_no_grad(m):
    with m.no_grad():
        y = exponential(m).apply(leaf(m, 1.0))
    return y.requires_grad, y.grad_fn is None, exponential(m).apply(m.ones(1)).requires_grad


@program
def ops_inside_are_not_recorded(m):
    class Inside(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.seen = y.requires_grad
            return y + 1

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(m, 1.0)
    y = Inside.apply(x)
    y.sum().backward()
    return y.grad_fn.seen, x.grad, y.grad_fn.next_functions[0][0].variable is x


@program
def not_written(m):
    class Nothing(m.autograd.Function):
        pass

    try:
        Nothing.apply(leaf(m, 1.0))
    except NotImplementedError as error:
        return str(error)


@program
def gradcheck_says(m):
    x = m.tensor([0.3, 0.7], dtype=m.float64, requires_grad=True)

    class Wrong(m.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    check = m.autograd.gradcheck
    try:
        check(Wrong.apply, (x,))
    except RuntimeError as error:
        text = str(error)[:56]
    return (
        check(lambda a: a.exp() * a, (x,)),
        check(Wrong.apply, (x,), raise_exception=False),
        text,
        m.autograd.gradgradcheck(lambda a: a.exp() * a, (x,)),
        check(exponential(m).apply, (x,)),
        m.autograd.gradgradcheck(exponential(m).apply, (x,)),
        x,
    )


@program
def gradcheck_of_several(m):
    x = m.tensor([0.3, 0.7], dtype=m.float64, requires_grad=True)
    y = m.tensor([[1.0], [2.0]], dtype=m.float64, requires_grad=True)
    f = lambda a, b, k: (a * b * k, (a + b).sin())  # noqa: E731
    return m.autograd.gradcheck(f, (x, y, 2.0)), m.autograd.gradgradcheck(f, (x, y, 2.0))


@program
def gradcheck_of_results_without_history(m):
    x = m.tensor([0.3, 0.7], dtype=m.float64, requires_grad=True)
    check = m.autograd.gradcheck
    functions = (
        lambda a: (a.detach() * 3, a * 2),
        lambda a: (a * 2, a.detach() * 3),
        lambda a: (a.detach() * 0, a.sin(), a.detach(), a.exp()),
        lambda a: a.detach() * 3,
        lambda a: (a.detach() * 0, a.detach()),
        lambda a: a.detach() * 0,
    )
    return [check(f, (x,), raise_exception=False) for f in functions]


@program
def gradcheck_needs_inputs(m):
    return m.autograd.gradcheck(lambda a: a * 2, (m.ones(2, dtype=m.float64),))


@program
def jacobian_and_hessian(m):
    x, y = m.tensor([1.0, 2.0]), m.tensor([3.0])
    f = m.autograd.functional
    return (
        f.jacobian(lambda a: a * a.sum(), x),
        f.jacobian(lambda a, b: a * b, (x, y)),
        f.hessian(lambda a: (a**3).sum(), x),
        f.jacobian(lambda a: (a, a * 2), x),
        f.hessian(lambda a, b: (a * a * b).sum(), (x, y)),
    )


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    check(program)


def test_saving_an_output_makes_no_cycle():
    y = exponential(tracejit).apply(leaf(tracejit, 1.0))
    dead = [weakref.ref(y), weakref.ref(y.grad_fn)]
    gc.disable()
    try:
        del y
        assert [r() for r in dead] == [None, None]
    finally:
        gc.enable()


def test_gradgradcheck_finds_a_wrong_second_derivative():
    class Wrong(tracejit.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * (2 * x).detach()

    x = tracejit.tensor([0.3, 0.7], dtype=tracejit.float64, requires_grad=True)
    assert tracejit.autograd.gradcheck(Wrong.apply, (x,))
    with pytest.raises(tracejit.autograd.GradcheckError, match="Jacobian mismatch"):
        tracejit.autograd.gradgradcheck(Wrong.apply, (x,))


def test_gradcheck_finds_results_that_change():
    calls = []

    class Noisy(tracejit.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            calls.append(1)
            return grad * (2 + 1e-9 * len(calls))

    x = tracejit.tensor([0.3], dtype=tracejit.float64, requires_grad=True)
    with pytest.raises(tracejit.autograd.GradcheckError, match="not reentrant"):
        tracejit.autograd.gradcheck(Noisy.apply, (x,))
    assert tracejit.autograd.gradcheck(Noisy.apply, (x,), nondet_tol=1e-6)


def test_gradcheck_warns_of_single_precision():
    with pytest.warns(UserWarning, match="double precision"):
        tracejit.autograd.gradcheck(lambda x: x * 2, (leaf(tracejit, 1.0),), eps=1e-2, atol=1e-2)
