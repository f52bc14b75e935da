"""Short programs around the tape, each of which must say the same under both libraries."""

import importlib
import warnings

import pytest

from tests.eager.programs import check, outcome

pytestmark = pytest.mark.oracle
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_program(program):
    check(program)


def leaf(m, *values):
    return m.tensor(values, requires_grad=True)


def cube(m, **members):
    """A Function by its `vjp`, with an argument that may be left out."""
    def forward(x, power=3):
        return x**power

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])
        ctx.power = inputs[1]

    def vjp(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ctx.power * x ** (ctx.power - 1), None

    members = {"forward": forward, "setup_context": setup_context, "vjp": vjp, **members}
    return type("Cube", (m.autograd.Function,), {k: staticmethod(f) for k, f in members.items()})


@program
def vjp_for_backward_and_default_arguments(m):
    x = leaf(m, 1.0, 2.0)
    (g,) = m.autograd.grad(cube(m).apply(x).sum(), x)
    (h,) = m.autograd.grad(cube(m).apply(x, 2).sum(), x)
    return g, h


@program
def both_vjp_and_backward(m):
    cube(m, backward=lambda ctx, g: (g, None)).apply(leaf(m, 1.0)).sum().backward()


@program
def function_called_itself(m):
    return cube(m)()(leaf(m, 1.0))


@program
def older_base_of_functions(m):
    from_there = importlib.import_module(f"{m.__name__}.autograd.function")
    return issubclass(from_there.InplaceFunction, m.autograd.Function)


@program
def saved_variables_warn(m):
    def backward(ctx, grad):
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            (x,) = ctx.saved_variables
        assert [w.category for w in seen] == [DeprecationWarning]
        return grad * 3 * x**2, None

    members = {"vjp": m.autograd.Function.vjp, "backward": backward}
    x = leaf(m, 2.0)
    cube(m, **members).apply(x).backward()
    return x.grad


@program
def order_of_hooks_at_a_leaf(m):
    x, seen = leaf(m, 1.0), []
    sink = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: seen.append("tensor"))
    sink.register_prehook(lambda g: seen.append("before the node"))
    sink.register_hook(lambda given, got: seen.append(("after the node", x.grad.item())))
    x.register_post_accumulate_grad_hook(lambda t: (seen.append("added"), t.grad.mul_(5)) and None)
    x.sum().backward()
    return seen


@program
def hook_on_a_result_without_gradient(m):
    variance, mean = m.var_mean(leaf(m, 1.0, 2.0, 4.0))
    seen = []
    variance.register_hook(lambda g: seen.append(g))
    mean.backward()
    return seen


@program
def gradient_put_where_there_is_none(m):
    variance, mean = m.var_mean(leaf(m, 1.0, 2.0, 4.0))
    variance.register_hook(lambda g: m.ones(()))
    mean.backward()


@program
def callbacks_at_the_end(m):
    x, seen = leaf(m, 1.0), []
    engine = m.autograd.Variable._execution_engine

    def last():
        seen.append("last")

    def callback():
        seen.append("over")
        engine.queue_callback(last)

    y = x * 2
    y.register_hook(lambda g: engine.queue_callback(callback))
    x.register_hook(lambda g: seen.append("leaf"))
    y.sum().backward()
    return seen


@program
def callback_without_a_backward(m):
    m.autograd.Variable._execution_engine.queue_callback(print)


@program
def written_variance(m):
    x = leaf(m, 1.0, 2.0, 4.0)
    variance, mean = m.var_mean(x)
    variance.mul_(2)
    (variance + mean).backward()
    return x.grad


@program
def extremes_that_are_nan(m):
    found = []
    for f in (m.max, m.min, m.median, m.nanmedian, m.amax,
              lambda x: m.linalg.vector_norm(x, float("inf"))):
        for values in ((1.0, 0.0, 1.0), (float("nan"),) * 3, (float("nan"), 1.0, 2.0)):
            x = leaf(m, *values)
            f(x).backward()
            found.append(x.grad)
    return found


@program
def views_of_what_is_detached(m):
    x = leaf(m, 1.0, 2.0, 3.0)
    y = x * 2
    view = y[:2]
    y.detach_()
    view.sum().backward()
    return x.grad, y.requires_grad, view.requires_grad, view._base is y


@program
def written_view_of_what_is_detached(m):
    y = leaf(m, 1.0, 2.0, 3.0) * 2
    view = y[:2]
    y.detach_()
    view.add_(1)


@program
def view_of_a_later_leaf(m):
    x = m.ones(2)
    view = x[:]
    x.requires_grad = True
    view.add_(1)


@program
def unique_elements(m):
    y = m.unique(leaf(m, 1.0, 2.0), return_counts=True)
    z = m.unique_consecutive(leaf(m, 1.0, 1.0))
    y[0].sum().backward() if y[0].requires_grad and z.requires_grad else None


@program
def array_in_no_grad(m):
    with m.no_grad():
        return leaf(m, 1.0).numpy()


@program
def pack_hook_that_writes(m):
    x = leaf(m, 1.0)
    with m.autograd.graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t):
        return x.exp()


@program
def class_in_no_grad(m):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")

        @m.no_grad()
        class Made:
            def __init__(self):
                self.mode = m.is_grad_enabled()

    return [w.category.__name__ for w in seen], Made().mode


@program
def zeros_of_a_recorded_backward(m):
    x, y = leaf(m, 1.0), leaf(m, 1.0)
    loss = (x * 2).sum()
    return [m.autograd.grad(loss, y, create_graph=graph, materialize_grads=True, retain_graph=True)
            for graph in (True, False)]


@program
def threads_of_a_backward(m):
    x = leaf(m, 1.0)
    with m.autograd.set_multithreading_enabled(False):
        (x * 2).backward()
    return x.grad


@program
def gradcheck_runs_the_function_with_history(m):
    x = m.ones(2, dtype=m.float64, requires_grad=True)
    seen = []

    def function(x):
        y = m.zeros(2, dtype=m.float64)
        y.add_(x)
        seen.append(y.requires_grad)
        return y

    return m.autograd.gradcheck(function, (x,)), all(seen)


def added_in_place(m):
    def forward(ctx, x, y):
        ctx.mark_dirty(x)
        return x.add_(y)

    members = {"forward": forward, "backward": lambda ctx, g: (g * 3, g * 2)}
    return type("Added", (m.autograd.Function,), {k: staticmethod(f) for k, f in members.items()})


@program
def function_that_writes_to_a_view(m):
    x, y = m.ones(4, 4, requires_grad=True), m.ones(2, 2, requires_grad=True)
    base = x.clone()
    view = base.narrow(1, 2, 2).narrow(0, 1, 2)
    written = added_in_place(m).apply(view, y)
    name = type(base.grad_fn).__name__
    (base * base).sum().backward()
    return written is view, name, x.grad, y.grad


@program
def function_that_writes_to_a_view_of_a_constant(m):
    base, y = m.zeros(4), leaf(m, 1.0, 2.0)
    added_in_place(m).apply(base[1:3], y).mul_(2)
    base.sum().backward()
    return base.requires_grad, y.grad


@program
def function_that_writes_to_a_view_of_a_leaf(m):
    added_in_place(m).apply(leaf(m, 1.0, 2.0)[:1], m.ones(1))


@program
def function_that_writes_to_a_piece(m):
    added_in_place(m).apply((leaf(m, 1.0, 2.0) * 1).split(1)[0], m.ones(1))


@program
def hooks_of_modules_in_second_derivatives(m):
    x, seen = leaf(m, 3.0), []
    loss = m.nn.MSELoss()
    loss.register_full_backward_hook(lambda *found: seen.append(len(found)))
    (g,) = m.autograd.grad(loss(x, m.zeros(1)), x, create_graph=True)
    return m.autograd.grad(g, x), seen


STRICT = {
    "constant": lambda m: lambda x: m.zeros(()),
    "linear": lambda m: lambda x: x.sum(),
    "square": lambda m: lambda x: (x * x).sum(),
    "cube": lambda m: lambda x: (x**3).sum(),
    "two": lambda m: lambda x, y: (x * x).sum(),
    "linear in two": lambda m: lambda x, y: (x * y).sum(),
}


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "vhp", "hvp"])
def test_functions_that_depend_on_little(name, strict, graph):
    def run(m):
        found = []
        for kind, make in STRICT.items():
            x = leaf(m, 1.0, 2.0)
            inputs = (x, x * 3) if "two" in kind else x
            v = {} if name in ("jacobian", "hessian") else {
                "v": m.ones(()) if name == "vjp" else (x, x) if "two" in kind else x.detach()}
            found.append(outcome(lambda m, given=(make(m), inputs), v=v: getattr(
                m.autograd.functional, name)(*given, strict=strict, create_graph=graph, **v), m))
        return found

    check(run)


@program
def vectors_and_inputs_of_another_number(m):
    f, x = m.autograd.functional, m.ones(2)
    return [outcome(lambda m, call=call: call(), m) for call in (
        lambda: f.vjp(m.sum, x, (x, x)), lambda: f.jvp(lambda x, y: x, (x, x), (x,)),
        lambda: f.hessian(m.sum, 3), lambda: f.hessian(m.sum, (x, 3)), lambda: f.hvp(m.exp, x))]


@program
def tangent_that_has_a_tangent(m):
    fw = importlib.import_module(f"{m.__name__}.autograd.forward_ad")
    with fw.dual_level():
        return fw.make_dual(m.ones(2), fw.make_dual(m.ones(2), m.ones(2)))


@program
def tangents_of_integers(m):
    fw, seen = importlib.import_module(f"{m.__name__}.autograd.forward_ad"), []

    class Both(m.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x.clone(), y.clone()

        @staticmethod
        def jvp(ctx, x, y):
            seen.append(y)
            return x, None

    with fw.dual_level():
        Both.apply(fw.make_dual(m.ones(()), m.ones(())), m.tensor(3))
    return seen


def checkpoint_of(m):
    return importlib.import_module(f"{m.__name__}.utils.checkpoint")


@pytest.mark.parametrize("early", [True, False])
def test_gradients_within_a_checkpointed_function(early):
    def run(m):
        place = checkpoint_of(m)
        x = leaf(m, 0.5)

        def energy(x):
            y = x.sin().exp()
            (force,) = m.autograd.grad(y.sum(), x, create_graph=True)
            return (force * force + y).sin()

        with place.set_checkpoint_early_stop(early):
            twice = place.checkpoint(lambda x: place.checkpoint(energy, x, use_reentrant=False) * x,
                                     x, use_reentrant=False)
            return m.autograd.grad(twice.sum(), x)

    check(run)


def test_more_saved_in_the_second_run():
    def run(m):
        place, runs = checkpoint_of(m), []

        def function(x):
            runs.append(1)
            return x.exp() if len(runs) == 1 else x.exp().exp()

        with place.set_checkpoint_early_stop(False):
            y = place.checkpoint(function, leaf(m, 0.5), use_reentrant=False)
        try:
            y.backward()
        except place.CheckpointError as error:
            return "trying to save more tensors during recomputation" in str(error)

    check(run)
