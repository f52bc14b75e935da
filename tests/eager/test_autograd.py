"""backward and grad against torch: values, graph, accumulation, hooks, errors."""

import pytest

from tests.eager.programs import check

pytestmark = pytest.mark.oracle
PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


def leaf(m, *values):
    return m.tensor(list(values), requires_grad=True)


@program
def a_gradient_that_a_result_has_already_is_not_written(m):
    result, before = leaf(m, 1.0, 2.0) * 1, m.ones(2)
    result.retain_grad()
    result.grad = before
    (result * 3).sum().backward()
    return before, result.grad


@program
def polynomial(m):
    x = leaf(m, 1.0, 2.0)
    (x * x * 3 + x).sum().backward()
    return x.grad


@program
def two_paths_accumulate(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    (y * x + y.exp()).sum().backward()
    return x.grad, y.requires_grad, y.is_leaf, x.is_leaf


@program
def backward_twice_adds(m):
    x = leaf(m, 1.0, 2.0)
    (x * x).sum().backward()
    kept = x.grad
    (x * 3).sum().backward()
    return x.grad, kept, kept is x.grad


@program
def broadcasting(m):
    x, y = m.ones(3, 1, requires_grad=True), m.ones(4, requires_grad=True)
    (x * y * 2).sum().backward()
    return x.grad, y.grad


@program
def second_backward_is_an_error(m):
    x = leaf(m, 1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    y.backward()


@program
def second_backward_without_saved_tensors(m):
    x = leaf(m, 1.0, 2.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def retain_graph(m):
    x = leaf(m, 1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


@program
def grad_of_grad(m):
    x = leaf(m, 1.0, 2.0, 3.0)
    (g,) = m.autograd.grad((x**3).sum(), x, create_graph=True)
    (h,) = m.autograd.grad(g.sum(), x, create_graph=True)
    (t,) = m.autograd.grad(h.sum(), x)
    return g, h, t, x.grad


@program
def grad_outputs(m):
    x = leaf(m, 1.0, 2.0)
    return m.autograd.grad(x * x, x, m.tensor([1.0, 10.0]))


@program
def grad_of_several(m):
    x, y = leaf(m, 1.0, 2.0), leaf(m, 3.0, 4.0)
    return m.autograd.grad([(x * y).sum(), (x + y).sum()], [x, y])


@program
def grad_with_respect_to_a_result(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    return m.autograd.grad(z, [y, x]), y.grad, x.grad


@program
def grad_of_itself(m):
    x = leaf(m, 1.0)
    y = x * 2
    return m.autograd.grad(y.sum(), y), m.autograd.grad(x, x)


@program
def unused_input(m):
    x, y = leaf(m, 1.0), leaf(m, 2.0)
    m.autograd.grad((x * 2).sum(), [x, y])


@program
def unused_input_allowed(m):
    x, y = leaf(m, 1.0), leaf(m, 2.0)
    g = m.autograd.grad((x * 2).sum(), [x, y], allow_unused=True)
    h = m.autograd.grad((x * 2).sum(), [x, y], materialize_grads=True)
    return g[0], g[1] is None, h


@program
def not_differentiable_input(m):
    m.autograd.grad(leaf(m, 1.0).sum(), m.ones(1))


@program
def no_grad_root(m):
    m.ones(1).backward()


@program
def implicit_only_for_scalars(m):
    (leaf(m, 1.0, 2.0) * 2).backward()


@program
def gradient_of_another_shape(m):
    (leaf(m, 1.0, 2.0) * 2).backward(m.ones(3))


@program
def backward_inputs(m):
    x, y = leaf(m, 1.0), leaf(m, 2.0)
    (x * y).sum().backward(inputs=[x])
    return x.grad, y.grad is None


@program
def backward_inputs_of_a_result(m):
    x = leaf(m, 1.0)
    y = x * 3
    (y * y).sum().backward(inputs=[y, x])
    return x.grad, y.grad


@program
def backward_of_several_roots(m):
    x = leaf(m, 1.0, 2.0)
    m.autograd.backward([(x * x).sum(), (x * 3)], [None, m.ones(2)])
    return x.grad


@program
def create_graph_in_backward(m):
    x = leaf(m, 1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    (g * g).sum().backward()
    return g, x.grad


@program
def node_names(m):
    x = leaf(m, 1.0, 2.0)
    nodes = [
        x + 1,
        x * 2,
        x - x,
        x / 2,
        x.exp(),
        x.log(),
        x.sin(),
        -x,
        x.sum(),
        x**2,
        x.tanh(),
        x.sigmoid(),
        x.sqrt(),
        x.abs(),
        x.clone(),
        x.unsqueeze(0),
        x.expand(2, 2),
        x[0],
    ]
    return [n.grad_fn.name() for n in nodes], [type(n.grad_fn).__name__ for n in nodes]


@program
def operands_of_reflected_operators(m):
    b = leaf(m, 1.0, 2.0).sin()
    return [[n and n.name() for n, _ in x.grad_fn.next_functions] for x in (2 * b, 2 + b)]


@program
def nodes_are_shown_by_their_names(m):
    node = leaf(m, 1.0).exp().grad_fn
    return [repr(n).partition(" at 0x")[0] for n in (node, node.next_functions[0][0])]


@program
def next_functions(m):
    x, y = leaf(m, 1.0), leaf(m, 2.0)
    z = x * y + 1
    first = z.grad_fn.next_functions
    second = first[0][0].next_functions
    leaves = [node.variable is t for (node, _), t in zip(second, (x, y))]
    return (
        [n and n.name() for n, _ in first],
        [type(n).__name__ for n, _ in second],
        leaves,
        z.output_nr,
    )


@program
def one_sink_per_leaf(m):
    x = leaf(m, 1.0)
    y, z = x * 2, x * 3
    a, b = y.grad_fn.next_functions[0][0], z.grad_fn.next_functions[0][0]
    return a is b


@program
def saved_values(m):
    x = leaf(m, 1.0, 2.0)
    y = x.exp()
    return y.grad_fn._saved_result, (x * x).grad_fn._saved_self


@program
def hooks_on_leaf_and_result(m):
    x = leaf(m, 1.0, 2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    h = x.register_hook(lambda g: g * 10)
    y = x * 2
    y.register_hook(lambda g: g + 1)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    h.remove()
    y.sum().backward()
    return seen, first, x.grad


@program
def hook_needs_grad(m):
    m.ones(1).register_hook(print)


@program
def hook_changes_shape(m):
    x = leaf(m, 1.0, 2.0)
    x.register_hook(lambda g: g.sum())
    (x * 2).sum().backward()


@program
def hook_with_autograd_grad(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    y.register_hook(lambda g: g * 5)
    return m.autograd.grad((y * y).sum(), [x, y])


@program
def node_hooks(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(lambda gi, go: seen.append((gi[0].tolist(), go[0].tolist())))
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.sum().backward()
    return seen, x.grad


@program
def node_hook_replaces(m):
    x = leaf(m, 1.0, 2.0)
    y = x.exp()
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 0 + 7,))
    y.sum().backward()
    return x.grad


@program
def post_accumulate_hook(m):
    x = leaf(m, 1.0, 2.0)
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append((t is x, t.grad.tolist())))
    (x * x).sum().backward()
    (x * x).sum().backward()
    return seen


@program
def retain_grad(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    z = y * y
    z.sum().backward()
    return y.grad, x.grad, y.retains_grad, z.grad is None, x.retains_grad


@program
def retained_after_in_place(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def metadata_of_nodes(m):
    y = leaf(m, 1.0) * 2
    y.grad_fn.metadata["k"] = 1
    return y.grad_fn.metadata


@program
def requires_grad_rules(m):
    x = leaf(m, 1.0)
    y = x * 2
    errors = []
    for act in (
        lambda: y.requires_grad_(False),
        lambda: m.tensor([1]).requires_grad_(),
        lambda: m.tensor([1], requires_grad=True),
        lambda: setattr(y, "requires_grad", False),
    ):
        try:
            act()
        except RuntimeError as error:
            errors.append(str(error))
    x.requires_grad = False
    return errors, x.requires_grad, (x * 2).requires_grad


@program
def grad_assignment(m):
    x = leaf(m, 1.0, 2.0)
    errors = []
    for value in (1, m.ones(3), x):
        try:
            x.grad = value
        except (RuntimeError, TypeError) as error:
            errors.append((type(error).__name__, str(error)))
    x.grad = m.ones(2)
    (x * 2).sum().backward()
    return errors, x.grad


@program
def detach_and_data(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    d = y.detach()
    d.mul_(10)
    e = x.data
    e.add_(1)
    return y.tolist(), d.requires_grad, x.tolist(), x._version, y._version, d._version


@program
def detach_in_place(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf, y.grad_fn is None


@program
def integers_do_not_carry_gradients(m):
    x = leaf(m, 1.0, 5.0)
    return x.argmax().requires_grad, (x > 2).requires_grad, x.long().requires_grad


@program
def dtype_of_gradients(m):
    x = m.ones(2, dtype=m.float64, requires_grad=True)
    y = m.ones(2, requires_grad=True)
    (x * y).sum().backward()
    return x.grad, y.grad


@program
def non_scalar_single_element(m):
    x = leaf(m, 3.0)
    (x * x).reshape(1, 1).backward()
    return x.grad


@program
def gradient_order_of_shared_node(m):
    x = leaf(m, 1.0, 2.0)
    y = x * 2
    outs = [y * k for k in range(1, 6)]
    total = outs[0]
    for o in outs[1:]:
        total = total + o
    total.sum().backward()
    return x.grad


@program
def newest_nodes_run_first(m):
    x, seen = leaf(m, 1.0), []
    a = x * 2
    b = x * 3
    c = a * 4
    for name, y in (("a", a), ("b", b), ("c", c), ("x", x)):
        y.register_hook(lambda g, name=name: seen.append((name, g.tolist())))
    m.autograd.backward([a.sum(), b.sum(), c.sum()])
    return seen


@program
def gradients_do_not_share_memory(m):
    x, y = leaf(m, 1.0, 2.0), leaf(m, 1.0, 2.0)
    z = x + y
    z.sum().backward()
    x.grad.mul_(5)
    return x.grad, y.grad


@program
def given_gradient_is_not_taken(m):
    x = leaf(m, 1.0, 2.0)
    g = m.ones(2)
    (x + 0).backward(g)
    (x * 1).backward(g)
    return g, x.grad


@program
def double_backward_through_saved_output(m):
    x = leaf(m, 0.5, 1.0)
    y = x.exp()
    (g,) = m.autograd.grad(y.sum(), x, create_graph=True)
    (g * g).sum().backward()
    return x.grad


@program
def deepcopy_rules(m):
    import copy

    x = leaf(m, 1.0)
    (x * 2).sum().backward()
    c = copy.deepcopy(x)
    try:
        copy.deepcopy(x * 2)
    except RuntimeError as error:
        return c, c.grad, c is x, str(error)[:95]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_torch(program):
    check(program)
