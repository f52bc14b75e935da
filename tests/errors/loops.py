"""Loops that are no part of the graph, with the reason."""

from __future__ import annotations

import contextlib

import tracejit as tj
from tests.errors.control_flow import Box, Tagged, data, leaf
from tests.errors.entries import logged, long, undecided, unrolled

N = 16  # iterations, enough to be worth a loop of the graph where their number is known


def rows(n=4):
    """Return some rows."""
    return tj.ones(n, 2)


# -- variables from iteration to iteration ---------------------------------------------------------


@unrolled("it computes mod of an int that changes in each iteration")
def dtype_changes(jit):
    @jit
    def f(x):
        y = x[0].int()
        for k in range(N):  # here
            y = y * 0.5 if k % 2 else y
        return y

    f(rows())


@undecided("y changes from int32 to float32")
def dtype_changes_in_a_while(jit):
    @jit
    def f(x):
        y = x.int()
        while y.sum() < 9:  # here
            y = y * 2.0 + 1
        return y

    f(data())


@undecided("x changes its shape")
def shape_changes(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = tj.cat([x, x])
        return x

    f(data())


@undecided("y is a tensor in one case and a tuple of 2 in the other")
def structure_changes(jit):
    @jit
    def f(x):
        y = x
        while x.sum() < 9:  # here
            x = x + 1
            y = (x, y)
        return x, y

    f(data())


@unrolled("a result of an iteration shares memory with an outer tensor")
def int_becomes_a_float(jit):
    @jit
    def f(x):
        n = 1
        for row in x:  # here
            x = x + row * n
            n = n * 1.5
        return x + row

    f(rows())


@undecided("it computes pow of an int that changes in each iteration")
def power_of_a_changing_int(jit):
    @jit
    def f(x):
        n = 1
        while x.sum() < 9:  # here
            n = n + 1
            x = x + 2**n
        return x

    f(data())


@undecided("it computes mul of an int that changes in each iteration")
def int_that_grows(jit):
    @jit
    def f(x):
        n = 1
        while x.sum() < 9:  # here
            n = n * n + 1
            x = x + n
        return x

    f(data())


@undecided("it uses an int that is too large")
def large_int(jit):
    @jit
    def f(x):
        n = 2**80
        while x.sum() < 9:  # here
            n = n + 1
            x = x + 2.0
        return x, n

    f(data())


@undecided("it computes truediv of a float that changes in each iteration")
def division_of_a_changing_float(jit):
    @jit
    def f(x):
        a = 1.0
        while x.sum() < 9:  # here
            a = 3.0 / a
            x = x + a
        return x

    f(data())


@undecided("it needs the value of a number that changes in each iteration")
def value_of_a_changing_number(jit):
    @jit
    def f(x):
        n = 0
        while x.sum() < 9:  # here
            n = n + 1
            x = x + len("a" * n)
        return x

    f(data())


@unrolled("it uses an index that is too large")
def index_is_large(jit):
    @jit
    def f(x):
        for k in range(2**64, 2**64 + N):  # here
            x = x + float(k)
        return x

    f(data())


@undecided("y has a value only after the first iteration")
def value_only_after_the_first_iteration(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + 1
            y = x * 2
        return y

    f(data())


@undecided("x requires grad only after an iteration")
def requires_grad_after_an_iteration(jit):
    w = leaf()

    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + w
        return x

    f(data())


@undecided("y requires grad only if there is no iteration")
def requires_grad_without_an_iteration(jit):
    w = leaf()

    @jit
    def f(x):
        y = w * 2
        while x.sum() < 9:  # here
            x = x + 1
            y = y.detach() * 2
        return y

    f(data())


@undecided("an iteration writes y in place and then assigns it")
def written_and_replaced(jit):
    @jit
    def f(x, y):
        while x.sum() < 9:  # here
            y.add_(1)
            y = y * 2
            x = x + 1
        return y

    f(data(), data())


@undecided("y has attributes of its own")
def attributes_of_the_users(jit):
    @jit
    def f(x):
        y = x * 2
        y.tag = "doubled"
        while x.sum() < 9:  # here
            x = x + 1
            y = y + 1
        return y

    f(data())


@undecided("a variable keeps a tensor from before the loop")
def variable_stays_one_of_two(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            a, b = b, a
            x = x + 1
        return a * 2 + b

    f(data(), data(), data())


@undecided("if no iteration runs, a variable is a view or another variable's tensor")
def variable_is_what_another_was(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            a, b = b, a + b
            x = x + 1
        return a, b

    f(data(), data(), data())


@undecided("a variable keeps a tensor from before the loop")
def view_of_a_variable(jit):
    @jit
    def f(x, a):
        a = a * 2
        while x.sum() < 9:  # here
            a = a[:]
            x = x + 1
        return a

    f(data(), data())


@undecided("two results of an iteration share memory")
def results_share_memory(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            a = x * 2
            b = a[:]
            x = x + 1
        return a, b

    f(data(), data(), data())


@undecided("a result of an iteration shares memory with an outer tensor")
def result_made_outside(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            a = b
            x = x + 1
        return a * 2

    f(data(), data(), data())


# -- memory ----------------------------------------------------------------------------------------


@unrolled("outer dict has other keys after an iteration")
def dict_that_grows(jit):
    @jit
    def f(x, kept):
        for row in x:  # here
            kept[len(kept)] = row * 2
        return kept

    f(rows(), {})


@unrolled("an element of a list shares memory with a variable of another iteration")
def part_of_a_tensor_handed_on(jit):
    @jit
    def f(x, before, h):
        kept = []
        for row in x:  # here
            before, h = h, h + row
            kept.append(before[0])
        return tj.stack(kept), before

    f(rows(), data(), data())


@unrolled("an element of a list and a variable share memory, and one of them requires grad")
def detached_part_appended(jit):
    @jit
    def f(x, h):
        kept = []
        for row in x:  # here
            h = h * row
            kept.append(h[0].detach())
        return tj.stack(kept), h

    f(rows(), leaf())


@unrolled("it writes a slice of a tensor in place")
def row_is_written(jit):
    @jit
    def f(x):
        for row in x:  # here
            row.add_(1)
        return x

    f(rows())


@unrolled("it reads a tensor whose rows it writes")
def read_where_rows_are_written(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = x[k] + y.sum()
        return y

    f(rows(), rows())


@unrolled("an iteration writes a tensor twice, or in another grad mode")
def written_twice(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = x[k]
            y[k] = x[k] * 2
        return y

    f(rows(), rows())


@unrolled("it computes floordiv of an int that changes in each iteration")
def written_at_an_unknown_place(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k // 2] = x[k]
        return y

    f(rows(), rows())


@unrolled("it writes a tensor at an index that is not known in advance")
def written_beside_other_indices(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k, 0] = x[k, 0]
        return y

    f(rows(), rows())


@unrolled("it writes a tensor out of range")
def written_out_of_range(jit):
    @jit
    def f(x, y):
        for k in range(-3, x.shape[0] - 3):  # here
            y[k] = x[k]
        return y

    f(rows(), rows())


@unrolled("it needs the value of a number that changes in each iteration")
def row_of_other_rank(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = x[k:k + 1] * 2
        return y

    f(rows(), rows())


@unrolled("it fills a row with a number that changes")
def row_filled_with_a_changing_number(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = k
        return y

    f(rows(), rows())


@unrolled("it writes rows of a tensor that overlaps itself or another tensor")
def overlapping_rows(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = x[k]
        return y + 1

    with contextlib.suppress(RuntimeError):
        f(rows(), tj.ones(1, 2).expand(4, 2))


@unrolled("it writes the same memory through two tensors")
def two_tensors_of_one_memory_written(jit):
    @jit
    def f(x, y):
        z = y[:]
        for k in range(x.shape[0]):  # here
            y[k] = x[k]
            z[k] = x[k] * 2
        return y

    f(rows(), rows())


@undecided("it writes a tensor that came from `.data`")
def written_that_is_from_data(jit):
    @jit
    def f(x, y):
        while x.sum() < 9:  # here
            y.add_(1)
            x = x + 1
        return y

    f(data(), leaf().data)


@unrolled("it writes a tensor while it uses a part of it")
def part_is_in_use(jit):
    @jit
    def f(x, y):
        z = x * 2
        for k in range(x.shape[0]):  # here
            row = z[y[k].int().sum() * 0]
            z.add_(1)
            x = x + row
        return x

    f(rows(), rows())


# -- lists -----------------------------------------------------------------------------------------


@unrolled("an iteration appends to a list twice")
def appended_twice(jit):
    @jit
    def f(x):
        kept = []
        for row in x:  # here
            kept.append(row * 2)
            kept.append(row * 3)
        return kept

    f(rows())


@unrolled("it appends under a condition, or it appends something that is no tensor")
def appended_is_no_tensor(jit):
    @jit
    def f(x):
        kept = []
        for k in range(x.shape[0]):  # here
            kept.append(k)
        return x * sum(kept)

    f(rows())


@unrolled("it appends to a list made outside the function or outside a surrounding loop")
def appended_to_a_list_of_the_callers(jit):
    kept = []

    @jit
    def f(x):
        for row in x:  # here
            kept.append(row * 2)
        return x * 2

    f(rows())


@undecided("a tensor decides when it ends, and it appends to a list")
def appended_in_a_while(jit):
    @jit
    def f(x):
        kept = []
        while x.sum() < 9:  # here
            x = x + 1
            kept.append(x)
        return kept

    f(data())


@unrolled("it reads a list that it appends to")
def list_is_read(jit):
    @jit
    def f(x):
        kept = []
        for row in x:  # here
            kept.append(row * len(kept))
        return kept

    f(rows())


@unrolled("it appends a tensor to two lists")
def one_tensor_in_two_lists(jit):
    @jit
    def f(x):
        kept, more = [], []
        for row in x:  # here
            y = row * 2
            kept.append(y)
            more.append(y)
        return kept, more

    f(rows())


@unrolled("it writes a tensor that it appends, or appends one from before the loop")
def element_was_there_before(jit):
    @jit
    def f(x):
        kept, h = [], x[0] * 2
        for row in x:  # here
            kept.append(h)
            h.add_(row)
        return kept

    f(rows())


@unrolled("it appends a tensor that is not contiguous")
def element_lies_in_another_order(jit):
    @jit
    def f(x):
        kept = []
        for row in x:  # here
            kept.append((row * 2).t())
        return kept

    f(tj.ones(4, 2, 3))


@unrolled("a tensor's value decides which tensor it appends")
def element_may_be_another(jit):
    @jit
    def f(x):
        kept, h = [], x[0] * 2
        for row in x:  # here
            y = row * 2
            kept.append(y if row.sum() > 0 else h)
            h = h + 1
        return kept

    f(rows())


@unrolled("it appends a tensor of a subclass")
def element_of_a_class(jit):
    @jit
    def f(x):
        kept = []
        for row in x:  # here
            kept.append((row * 2).as_subclass(Tagged))
        return kept

    f(rows())


@unrolled("it appends to a list made outside the function or outside a surrounding loop")
def list_changes_and_grows(jit):
    @jit
    def f(x):
        kept = [x[0]]
        for row in x:  # here
            kept.append(row * 2)
            kept = [row]
        return kept

    f(rows())


# -- indices ---------------------------------------------------------------------------------------


@undecided("it indexes a tensor by a number that may be out of range")
def index_may_be_out_of_range(jit):
    @jit
    def f(x, y):
        k = 0
        while x.sum() < 9:  # here
            x = x + y[k]
            k = k + 1
        return x

    f(data(), rows(8))


@unrolled(
    "it indexes a tensor out of range",
)
def index_is_out_of_range(jit):
    @jit
    def f(x, y):
        for k in range(N):  # here
            if x.sum() > 2:
                break
            x = x + y[k]
        return x

    f(data(), rows(3))


@unrolled("it indexes a tensor by slices, a number and its index")
def index_after_a_number_and_slices(jit):
    @jit
    def f(x, y):
        for k in range(N):  # here
            x = x + y[:, 0, k].sum()
        return x

    f(data(), tj.ones(2, 2, N))


# -- how it ends -----------------------------------------------------------------------------------


@undecided("a tensor decides when it ends, and it draws random numbers")
def random_numbers(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + tj.rand(2)
        return x

    f(data())


@undecided("the body leaves the loop or the function")
def body_leaves_the_loop(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + 1
            break
        return x

    f(data())


@undecided("its test may raise an error, and its body may leave the loop first")
def test_may_fail(jit):
    @jit
    def f(x, y):
        while y[x.sum().long()] < 9:  # here
            x = x + 1
            if x.sum() > 3:
                break
        return x

    f(data(), rows()[:, 0])


@undecided("the returned value is a Box in one case only")
def object_is_returned(jit):
    box = Box()

    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + 1
            if x.sum() > 5:
                return box
        return x

    f(data())


@undecided("the returned value is a tensor in one case and a tuple of 2 in the other")
def returned_values_differ(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + 1
            if x.sum() > 5:
                return x
        return x, x

    f(data())


@undecided(
    "if no iteration runs, a variable is a view or another variable's tensor",
    "the branch runs as Python: the returned value has different shapes in the two cases",
)
def returned_view(jit):
    @jit
    def f(x):
        y = x * 2
        z = y[:1]
        while x.sum() < 9:  # here
            if x.sum() > 5:
                return z
            x = x + 1
            z = z * 2
        return x

    f(data())


@undecided("a result is a view of an outer tensor in one case only")
def returned_view_of_a_variable(jit):
    @jit
    def f(x):
        x = x * 1
        while x.sum() < 9:  # here
            if x.sum() > 5:
                return x[:1]
            x = x + 1
        return x

    f(data())


@undecided("a result is a view of an outer tensor in one case only")
def returned_that_was_made_outside(jit):
    @jit
    def f(x, y):
        while x.sum() < 9:  # here
            if x.sum() > 5:
                return y[0]
            x = x + 1
        return x

    f(data(), data())


@undecided("two results of one branch share memory")
def returned_parts_share_memory(jit):
    @jit
    def f(x):
        while x.sum() < 9:  # here
            x = x + 1
            if x.sum() > 5:
                y = x * 2
                return y, y[:]
        return x, x

    f(data())


@undecided("the returned value may be an outer tensor", "Python needs to know if a tensor is true")
def returned_of_two_tensors(jit):
    @jit
    def f(x, y, z):
        while True:  # here
            x = x + 1
            if x.sum() > 9:
                return y
            if x.sum() > 5:
                return z

    f(data(), data(), data())


@undecided("it asks if two variables are one tensor")
def identity_of_variables(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            x = x + (1 if a is b else 2)
            a, b = b * 1, a * 1
        return x

    f(data(), data(), data())


@undecided("it asks which tensor a variable is")
def variable_as_a_key(jit):
    @jit
    def f(x, a):
        while x.sum() < 9:  # here
            x = x + (1 if a in {x: 1} else 2)
            a = a * 1
        return x

    f(data(), data())


@unrolled("it reads a list that a loop filled")
def list_of_another_loop(jit):
    @jit
    def f(x):
        kept = []
        for row in x:
            kept.append(row * 2)
        for row in x:  # here
            x = x + row * kept[0]
        return x

    f(rows())


@undecided(
    "a result is a view of an outer tensor in one case only",
)
def may_be_a_view(jit):
    @jit
    def f(x, a, b):
        y = a[:1]
        while x.sum() < 9:  # here
            b = y if x.sum() > 5 else b * 1
            x = x + 1
        return b

    f(data(), data(), data()[:1])


@undecided(
    "b may be a tensor that the loop writes",
    "the branch runs as Python: it writes memory that it also reads through another tensor",
)
def may_be_what_is_written(jit):
    @jit
    def f(x, a, b):
        while x.sum() < 9:  # here
            b = a if x.sum() > 5 else b * 1
            a.add_(1)
            x = x + 1
        return a, b

    f(data(), data(), data())


@undecided("its variables change in too many ways", "the function calls item()")
def many_numbers(jit):
    @jit
    def f(x):
        a = b = c = d = e = g = h = i = j = k = m = n = o = p = q = r = s = 0
        while x.sum() < 9:  # here
            b, c, d, e, g, h, i, j, k = a, b, c, d, e, g, h, i, j
            m, n, o, p, q, r, s = k, m, n, o, p, q, r
            a = a + 1
            x = x + a
        return x, a, b, c, d, e, g, h, i, j, k, m, n, o, p, q, r, s

    f(data())


@unrolled("its variables exchange tensors, and it has few iterations")
def few_iterations(jit):
    @jit
    def f(x, a, b):
        for row in x:  # here
            a, b = b, a + row
        return a, b

    f(rows(2), data(), data())


@undecided("only one branch leaves the loop")
def leaves_after_one_iteration(jit):
    @jit
    def f(x, a, b):
        for row in x:  # here
            a, b = b, a + row
            if a.sum() > 50:
                break
        return a, b

    f(rows(), data(), data())


@unrolled("its body raises KeyError: 'a'")
def body_raises(jit):
    @jit
    def f(x, given):
        for row in x:  # here
            x = x + row + given["a"]
        return x

    with contextlib.suppress(KeyError):
        f(rows(), {})


@unrolled(
    "its body raises RuntimeError: The size of tensor a (2) must match the size of "
    "tensor b (3) at non-singleton dimension 0",
)
def body_fails(jit):
    @jit
    def f(x):
        for row in x:  # here
            x = x + row * tj.ones(3)
        return x

    with contextlib.suppress(RuntimeError):
        f(rows())


@unrolled(
    "the returned value is 'text' in one case and an int computed from tensors in the other",
)
def number_becomes_a_text(jit):
    @jit
    def f(x):
        n = 0
        for row in x:  # here
            n = "text" if n == 3 else n + 1
            x = x + row
        return x

    f(rows())


@unrolled(
    "the returned value is a float computed from tensors in one case and an int computed from "
    "tensors in the other",
)
def number_becomes_a_float(jit):
    @jit
    def f(x):
        n, k = 0, 0
        for row in x:  # here
            k = k + 1
            n = n + 0.5 if k > 2 else k
            x = x + row * n
        return x

    f(rows(6))


@unrolled("it writes a row with too many dimensions")
def row_of_higher_rank(jit):
    @jit
    def f(x, y):
        for k in range(x.shape[0]):  # here
            y[k] = x[k][None] * 2
        return y

    f(rows(), rows())


@undecided(
    "it writes memory that it also reads through another tensor",
    "the function reads memory that it wrote through an overlapping tensor",
    "the branch runs as Python: it uses a tensor that overlaps another tensor",
)
def written_and_read_by_a_view(jit):
    @jit
    def f(x, y):
        z = y.view(2, 1)
        while x.sum() < 9:  # here
            y.add_(1)
            z = z * 1  # here
            x = x + z[:, 0]
        return x

    f(data(), data())


@unrolled("different iterations give gradients to different tensors")
def gradients_differ_between_iterations(jit):
    w = leaf()

    @jit
    def f(x):
        a, b = w * 1, w.detach() * 1
        for row in x:  # here
            a, b = b * row, a * row
        return a, b

    f(rows())


@unrolled("an iteration writes a tensor that the gradient of the previous one needs")
def iteration_writes_what_was_kept(jit):
    w = leaf()

    @jit
    def f(x):
        y, h = x[0] * 0, x[0] * 2
        for row in x:  # here
            y = y + w * h
            h.add_(row)
        return y

    f(rows())


@logged(
    "the loop runs as Python: a variable may be a view of an outer tensor",
    "iterations run one by one: it uses a tensor that overlaps another tensor",
)
def view_of_an_argument_in_a_loop_that_may_end(jit):
    @jit
    def f(x):
        v = x[:2]
        for row in x:  # here
            if row.sum() > 2:
                break
            v = v + 1
        return v

    f(rows())


@logged(
    "the loop runs as Python: a tensor gets a gradient only after several iterations",
    "iterations run one by one: a tensor gets a gradient in one branch only",
)
def weights_that_may_not_be_used(jit):
    w = leaf()

    @jit
    def f(x, limit):
        h = tj.zeros(2)
        for t in range(x.shape[0]):  # here
            if (h + x[t]).abs().sum() > limit:
                return h + x[t]
            h = tj.tanh(x[t] + h * w)
        return h

    f(rows(), tj.tensor(3.0))


@undecided(
    "an iteration writes x in place and then assigns it",
    "the branch runs as Python: x: a tensor's value decides which tensor it is",
)
def written_that_may_be_another(jit):
    @jit
    def f(x, t):
        x = x + t.sum()
        k = 0
        while k < 4 and t[0] != 0.5:  # here
            k += 1
            x.zero_()
            if t.amax() >= 0:
                continue
            if x.sum() != k:
                x = x + t.sum()
        return x

    f(tj.ones(1, 3), (tj.arange(3.0) * 0.1 - 1).requires_grad_())


@undecided("a variable may be `.data` of a tensor")
def data_that_a_loop_may_replace(jit):
    @jit
    def f(x, t):
        y = x.data
        while t.sum() <= 3:  # here
            t = t + 1
            y = y * 2
        return y

    f(data(), data() * 0)


@unrolled("best may share memory with another tensor")
def may_share_memory(jit):
    @jit
    def f(x):
        y, best = x * 1, x.detach() * 2
        for row in x.detach():  # here
            if row > 5:
                best = y.detach()
            y = y * y
        best.add_(1)
        return y

    f(tj.ones(3, requires_grad=True))


@logged("iterations run one by one: it fails for the values of this call")
def iterations_that_fail(jit):
    @jit
    def f(x):
        for k in range(3):  # here
            if k == 2:
                raise ValueError("third")
            if x.sum() > 8 - k:
                return x * 2
        return x

    with contextlib.suppress(ValueError):
        f(data())


# -- long loops ------------------------------------------------------------------------------------


@long(
    "16 iterations one by one: it goes over a list\nhint: loop over `tracejit.stack(items)`, which "
    "becomes one loop",
)
def list_of_tensors(jit):
    @jit
    def f(x, items):
        for item in items:  # here
            x = x * item
        return x

    f(data(), [data()] * N)
    f(data(), [data()] * (N - 1))


@long(
    "16 iterations one by one: a number of Python's decides when it ends\nhint: use `for k in "
    "range(n)`, or test a tensor",
)
def counted_by_python(jit):
    @jit
    def f(x):
        k = 0
        while k < N:  # here
            x = x * 1.5
            k += 1
        while k < 2 * N:  # of numbers alone
            k += 1
        return x

    f(data())


@long(
    "16 iterations one by one: it runs under vmap, which records each iteration\nhint: give the "
    "loop whole batches, with a dimension for the samples, in place of `vmap`",
)
def mapped_loop(jit):
    def one(v):
        h = v * 0
        for _ in range(N):  # here
            h = h * 0.5 + v
        return h

    @jit
    def f(x):
        return tj.func.vmap(one)(x)

    f(rows())


@long(
    "20 iterations one by one: it writes a slice of a tensor in place\nhint: append the row to a "
    "list, and `tracejit.stack` the list behind the loop",
)
def rows_that_are_written(jit):
    @jit
    def f(x):
        for row in x:  # here
            row.add_(1)
        return x

    f(rows(20))
