"""Gradients: a backward a second time, tensors written after saving, histories from outside."""

from __future__ import annotations

import tracejit as tj
from tests.errors.control_flow import data, leaf
from tests.errors.entries import breaks, raises

MODES = ("graph", "compiled")


@raises(
    RuntimeError,
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the graph "
    "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
    "if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward.",
    modes=MODES,
)
def backward_a_second_time(jit):
    @jit
    def f(x):
        return (x * x).sum()

    loss = f(leaf())
    loss.backward()
    loss.backward()  # here


@raises(
    RuntimeError,
    "Trying to backward through the graph a second time (or directly access saved "
    "tensors after they have already been freed). Saved intermediate values of the graph "
    "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True "
    "if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward.",
)
def backward_inside_a_second_time(jit):
    @jit
    def f(x):
        loss = (x * x).sum()
        loss.backward()
        loss.backward()  # here
        return x

    f(leaf())


@raises(
    RuntimeError,
    "one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [tracejit.FloatTensor [2]] is at version 1; expected version 0 "
    "instead. Hint: enable anomaly detection to find the operation that failed to "
    "compute its gradient, with tracejit.autograd.set_detect_anomaly(True, "
    "check_nan=False).",
    modes=MODES,
)
def argument_written_after_saving(jit):
    @jit
    def f(x, w):
        return (x * w).sum()

    x = data()
    loss = f(x, leaf())
    x.add_(1)
    loss.backward()  # here


@raises(
    RuntimeError,
    "one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [tracejit.FloatTensor [2]], which is output 0 of ExpBackward0, "
    "is at version 1; expected version 0 instead. Hint: enable anomaly detection to find "
    "the operation that failed to compute its gradient, with "
    "tracejit.autograd.set_detect_anomaly(True, check_nan=False).",
)
def result_written_after_saving(jit):
    @jit
    def f(x):
        y = x.exp()
        return y, y.sum()

    y, loss = f(leaf())
    with tj.no_grad():
        y.add_(1)
    loss.backward()  # here


@raises(
    RuntimeError,
    "one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [tracejit.FloatTensor [2]], which is output 0 of MulBackward0, "
    "is at version 1; expected version 0 instead. Hint: enable anomaly detection to find "
    "the operation that failed to compute its gradient, with "
    "tracejit.autograd.set_detect_anomaly(True, check_nan=False).",
)
def written_inside_after_saving(jit):
    @jit
    def f(x):
        y = x * 2
        loss = (y * y).sum()
        with tj.no_grad():
            y.add_(1)
        loss.backward()  # here
        return x

    f(leaf())


@raises(RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation.")
def leaf_is_written(jit):
    @jit
    def f(x):
        x.add_(1)  # here
        return x * 2

    f(leaf())


@raises(
    RuntimeError,
    "a view of a leaf Variable that requires grad is being used in an in-place operation.",
)
def view_of_a_leaf_is_written(jit):
    @jit
    def f(x):
        x[0].add_(1)  # here
        return x * 2

    f(leaf())


@raises(
    RuntimeError,
    "Output 0 of Unbind is a view and is being modified inplace. This view is the output "
    "of a function that returns multiple views. Such functions do not allow the output "
    "views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one.",
)
def one_of_several_views_is_written(jit):
    @jit
    def f(x):
        y = x * 2
        one, _ = y.unbind()
        one.add_(1)  # here
        return y

    f(leaf())


@raises(
    RuntimeError,
    "A view was created in no_grad mode and is being modified inplace with grad mode "
    "enabled. Given that this use case is ambiguous and error-prone, it is forbidden. "
    "You can clarify your code by moving both the view and the inplace either both "
    "inside the no_grad block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked).",
)
def view_made_without_gradients_is_written(jit):
    @jit
    def f(x):
        y = x * 2
        with tj.no_grad():
            row = y[:1]
        row.add_(1)  # here
        return y

    f(leaf())


@raises(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn")
def no_history(jit):
    @jit
    def f(x):
        (x * 2).sum().backward()  # here
        return x

    f(data())


@raises(
    RuntimeError,
    "element 0 of tensors does not require grad and does not have a grad_fn",
    modes=MODES,
)
def no_history_of_a_result(jit):
    @jit
    def f(x):
        return (x * 2).sum()

    f(data()).backward()  # here


@raises(RuntimeError, "grad can be implicitly created only for scalar outputs")
def no_scalar(jit):
    @jit
    def f(x):
        (x * 2).backward()  # here
        return x

    f(leaf())


@raises(
    RuntimeError,
    "The differentiated Tensor at index 0 appears to not have been used in the graph. "
    "Set allow_unused=True if this is the desired behavior.",
)
def not_in_the_graph(jit):
    @jit
    def f(x, w):
        return x * tj.autograd.grad((x * 2).sum(), w)[0]  # here

    f(leaf(), leaf())


@raises(
    RuntimeError,
    "Mismatch in shape: grad_output[0] has a shape of tracejit.Size([3]) and output[0] "
    "has a shape of tracejit.Size([2]).",
)
def gradient_of_another_shape(jit):
    @jit
    def f(x):
        (x * 2).backward(tj.ones(3))  # here
        return x

    f(leaf())


@raises(RuntimeError, "derivative for aten::floor_divide is not implemented")
def no_derivative(jit):
    @jit
    def f(x):
        (x // 2).sum().backward()  # here
        return x

    f(leaf())


@raises(
    RuntimeError,
    "attempting to assign a gradient of size '[3]' to a tensor of size '[2]'. Please "
    "ensure that the gradient and the tensor are the same size",
)
def grad_of_another_size(jit):
    @jit
    def f(x):
        x.grad = tj.ones(3)  # here
        return x * 2

    f(leaf())


@raises(
    RuntimeError,
    "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
)
def numpy_of_what_requires_grad(jit):
    @jit
    def f(x):
        return x * 2, x.numpy()  # here

    f(leaf())


@raises(
    RuntimeError,
    "you can only change requires_grad flags of leaf variables. If you want to use a "
    "computed variable in a subgraph that doesn't require differentiation use "
    "var_no_grad = var.detach().",
)
def requires_grad_of_what_is_computed(jit):
    @jit
    def f(x):
        y = x * 2
        y.requires_grad = False  # here
        return y

    f(leaf())


@raises(RuntimeError, "only Tensors of floating point dtype can require gradients")
def integers_that_require_grad(jit):
    @jit
    def f(x):
        y = x.int()
        y.requires_grad = True  # here
        return y

    f(data())


@raises(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient")
def hook_without_gradient(jit):
    @jit
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g)  # here
        return y

    f(data())


@raises(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False")
def retain_grad_without_gradient(jit):
    @jit
    def f(x):
        y = x * 2
        y.retain_grad()  # here
        return y

    f(data())


# -- breaks ----------------------------------------------------------------------------------------


@breaks(
    "backward() runs through history from before the call\nhint: detach the input, or compute it "
    "inside the captured function",
)
def history_made_outside(jit):
    @jit
    def f(x, h):
        h.sum().backward()  # here
        return x * 2

    f(data(), leaf() * 2)


@breaks("a result retains its gradient")
def result_retains_its_gradient(jit):
    @jit
    def f(x):
        y = x * 2
        y.retain_grad()
        y.sum().backward()
        return y

    f(leaf())  # here


@breaks("backward() from a result may reach a leaf that the function made")
def leaf_made_in_the_call(jit):
    @jit
    def f(x):
        w = (x * 2).detach().requires_grad_()
        return w * w, w

    f(data())  # here


@breaks("the function returns or stores a tracejit.core.eager.tape.SumBackward0")
def history_from_outside_in_a_result(jit):
    w = leaf()
    loss = (w * 2).sum()

    @jit
    def f(x):
        y = x * w
        return y, loss.grad_fn

    f(leaf())  # here


@breaks("the result's backward gives a sparse gradient")
def sparse_gradient(jit):
    table = tj.nn.Embedding(3, 2, sparse=True)

    @jit
    def f(i):
        return table(i).sum()

    f(tj.tensor([0, 1]))  # here


@breaks(
    "the result's backward would fail: RuntimeError: derivative for aten::floor_divide is not "
    "implemented",
)
def backward_without_a_derivative(jit):
    @jit
    def f(x):
        return x // 2

    f(leaf())  # here


@breaks(
    "a backward runs a hook or overwritten history only if a tensor's value says so",
    "Python needs to know if a tensor is true",
)
def hook_that_a_value_may_leave_out(jit):
    @jit
    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 3)
        z = y * 2 if x.sum() > 0 else x * 5
        z.sum().backward()  # here
        return x * 1

    f(leaf())


@breaks("the result's backward writes to the gradient that it receives")
def backward_that_writes_its_gradient(jit):
    class Writing(tj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad.mul_(2)

    @jit
    def f(x):
        return Writing.apply(x)

    f(leaf())  # here


@breaks(
    "the function takes a second derivative through a branch or a loop",
    "Python needs to know if a tensor is true",
)
def second_derivative_through_control_flow(jit):
    @jit
    def f(x):
        y = x * x if x.sum() > 0 else x * 3
        g, = tj.autograd.grad(y.sum(), x, create_graph=True)  # here
        h, = tj.autograd.grad(g.sum(), x)
        return h

    f(leaf())


@breaks("a result is from `.data`, and a later backward() needs its present value")
def data_of_a_result_needed_later(jit):
    @jit
    def f(x):
        d = x.exp().data
        return d * x, d

    f(leaf())  # here


@breaks(
    "a tensor's value decides if a backward() in the function frees the history of a result",
)
def freed_if_a_value_says_so(jit):
    @jit
    def f(x):
        v = x
        if x.sum() > 2:
            v = x.exp()
        loss = (v - x).sum()
        loss.backward()
        return loss

    f(leaf())  # here


@raises(
    RuntimeError,
    "one of the variables needed for gradient computation has been modified by an "
    "inplace operation: [tracejit.FloatTensor [2]] is at version 1; expected version 0 "
    "instead. Hint: enable anomaly detection to find the operation that failed to "
    "compute its gradient, with tracejit.autograd.set_detect_anomaly(True, "
    "check_nan=False).",
)
def written_before_a_branch_runs_again(jit):
    class Doubled(tj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    @jit
    def f(x, w):
        return Doubled.apply(x * w) * w if x.sum() > 0 else x

    x, w = data(), leaf()
    loss = f(x, w).sum()
    x.add_(1)
    loss.backward()  # here


@breaks(
    "the result's backward would fail: RuntimeError: one of the variables needed for gradient "
    "computation has been modified by an inplace operation: [tracejit.FloatTensor [2]], which is "
    "output 0 of ExpBackward0, was written since. Hint: enable anomaly detection to find the "
    "operation that failed to compute its gradient, with "
    "tracejit.autograd.set_detect_anomaly(True, check_nan=False).",
)
def saved_result_is_written(jit):
    @jit
    def f(x):
        y = x.exp()
        z = y.mean() - y
        y.mul_(2)
        return z + y

    f(leaf())  # here


@breaks(
    "the result's backward runs function_that_keeps_a_log.<locals>.Logged.backward, which may "
    "read or change other objects",
)
def function_that_keeps_a_log(jit):
    log = []

    class Logged(tj.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            log.append("backward")
            return grad * 2

    w = leaf()

    @jit
    def f(x):
        return Logged.apply(x * w)

    f(data())  # here


@breaks("the function calls retain_grad() on a tensor it made, and backward() may run after the "
        "call")
def result_that_retains_its_gradient(jit):
    w = leaf()

    @jit
    def f(x):
        y = x * w
        y.retain_grad()
        return y

    f(data())  # here


# -- branches that run custom Functions ------------------------------------------------------------


class Cubed(tj.autograd.Function):
    """A Function that may be part of a branch."""

    @staticmethod
    def forward(ctx, x):
        return x * x * x

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


def cubed(jit):
    """Capture a function that runs it in a branch."""
    return jit(lambda x: Cubed.apply(x) * x if x.sum() > 0 else x * 3)


@raises(
    RuntimeError,
    "tracejit: cannot differentiate the gradient of a compiled branch or loop that runs custom "
    "Functions or hooks. Call the function without capture.",
    plainly=False,
)
def second_backward_through_a_function_in_a_branch(jit):
    x = leaf()
    g, = tj.autograd.grad(cubed(jit)(x).sum(), x, create_graph=True)
    g.sum().backward()  # here


@raises(
    RuntimeError,
    "tracejit: a tensor was written between a captured call and its backward, which runs a branch "
    "or a loop again and needs the old value. Write the tensor after the backward, or call the "
    "function without capture.",
    plainly=False,
)
def data_written_before_a_branch_runs_again(jit):
    x = leaf()
    y = cubed(jit)(x).sum()
    x.data.add_(1)
    y.backward()  # here
