"""Pairs of programs with loops: before and after a hint is applied."""

from __future__ import annotations

import tracejit as tj
from tests.errors.control_flow import Tagged, data, leaf
from tests.errors.corners import Asked
from tests.errors.pairs import after, before

N = 20


def rows(n=N):
    """Return some rows."""
    return tj.ones(n, 2)


def two():
    """Return two tables of rows."""
    return rows(), rows()


def some(n):
    """Return a function that makes `n` tensors of two numbers."""
    return lambda: tuple(data() for _ in range(n))


# -- variables -------------------------------------------------------------------------------------


@before("it computes mod of an int that changes in each iteration", lambda: (rows(),), loop=True)
def _(x):
    y = x[0] * 1
    for k in range(N):
        y = y * 0.5 if k % 2 else y
    return y


@after
def _(x):
    y = x[0] * 1
    for k in tj.arange(N):
        y = tj.where(k % 2 == 1, y * 0.5, y)
    return y


@before("y changes from int32 to float32")
def _(x):
    y = x.int()
    while y.sum() < 9:
        y = y * 2.0 + 1
    return y


@after
def _(x):
    y = x.int().float()
    while y.sum() < 9:
        y = y * 2.0 + 1
    return y


@before("x changes its shape")
def _(x):
    while x.sum() < 9:
        x = tj.cat([x, x])
    return x.sum()


@after
def _(x):
    times = tj.ones(2)
    while (x * times).sum() < 9:
        times = times * 2
    return (x * times).sum()


@before("y is a tensor in one case and a tuple of 2 in the other")
def _(x):
    y = x
    while x.sum() < 9:
        x = x + 1
        y = (x, x * 2)
    return x, y[1]


@after
def _(x):
    y = (x * 1, x * 2)
    while x.sum() < 9:
        x = x + 1
        y = (x * 1, x * 2)
    return x, y[1]


@before("it computes pow of an int that changes in each iteration")
def _(x):
    n = 1
    while x.sum() < 9:
        n = n + 1
        x = x + 2**n
    return x


@after
def _(x):
    n = tj.tensor(1)
    while x.sum() < 9:
        n = n + 1
        x = x + 2**n
    return x


@before("it computes truediv of a float that changes in each iteration")
def _(x):
    a = 1.0
    while x.sum() < 9:
        a = 3.0 / a
        x = x + a
    return x


@after
def _(x):
    a = tj.tensor(1.0)
    while x.sum() < 9:
        a = 3.0 / a
        x = x + a
    return x


@before("y has a value only after the first iteration")
def _(x):
    while x.sum() < 9:
        x = x + 1
        y = x * 2
    return y


@after
def _(x):
    y = x * 0
    while x.sum() < 9:
        x = x + 1
        y = x * 2
    return y


@before("x requires grad only after an iteration", lambda: (data(), leaf()))
def _(x, w):
    while x.sum() < 9:
        x = x + w
    return x


@after
def _(x, w):
    x = x + 0 * w
    while x.sum() < 9:
        x = x + w
    return x


@before("an iteration writes y in place and then assigns it", some(2))
def _(x, y):
    while x.sum() < 9:
        y.add_(1)
        y = y * 2
        x = x + 1
    return y


@after
def _(x, y):
    while x.sum() < 9:
        y = y + 1
        y = y * 2
        x = x + 1
    return y


@before("y has attributes of its own")
def _(x):
    y = x * 2
    y.tag = "doubled"
    while x.sum() < 9:
        x = x + 1
        y = y + 1
    return y


@after
def _(x):
    y = x * 2
    while x.sum() < 9:
        x = x + 1
        y = y + 1
    return y


@before("a variable keeps a tensor from before the loop", some(3))
def _(x, a, b):
    while x.sum() < 9:
        a, b = b, a
        x = x + 1
    return a * 2 + b


@after
def _(x, a, b):
    while x.sum() < 9:
        a, b = b.clone(), a.clone()
        x = x + 1
    return a * 2 + b


@before("if no iteration runs, a variable is a view or another variable's tensor", some(3))
def _(x, a, b):
    while x.sum() < 9:
        a, b = b, a + b
        x = x + 1
    return a, b


@after
def _(x, a, b):
    while x.sum() < 9:
        a, b = b.clone(), a + b
        x = x + 1
    return a, b


@before("two results of an iteration share memory", some(3))
def _(x, a, b):
    while x.sum() < 9:
        a = x * 2
        b = a[:]
        x = x + 1
    return a, b


@after
def _(x, a, b):
    while x.sum() < 9:
        a = x * 2
        b = a[:].clone()
        x = x + 1
    return a, b


@before("a result of an iteration shares memory with an outer tensor", some(3))
def _(x, a, b):
    while x.sum() < 9:
        a = b
        x = x + 1
    return a * 2


@after
def _(x, a, b):
    while x.sum() < 9:
        a = b.clone()
        x = x + 1
    return a * 2


@before("its variables exchange tensors, and it has few iterations",
        lambda: (rows(2), data(), data()), loop=True)
def _(x, a, b):
    for row in x:
        a, b = b, a + row
    return a, b


@after
def _(x, a, b):
    for row in x:
        a, b = b.clone(), a + row
    return a, b


@before("its variables change in too many ways")
def _(x):
    a = b = c = d = e = g = h = i = j = k = m = n = o = p = q = r = s = 0
    while x.sum() < 9:
        b, c, d, e, g, h, i, j, k = a, b, c, d, e, g, h, i, j
        m, n, o, p, q, r, s = k, m, n, o, p, q, r
        a = a + 1
        x = x + a
    return x, a + b + c + d + e + g + h + i + j + k + m + n + o + p + q + r + s


@after
def _(x):
    n = tj.zeros(17)
    while x.sum() < 9:
        n = tj.cat([n[:1] + 1, n[:-1]])
        x = x + n[0]
    return x, n.sum()


# -- memory ----------------------------------------------------------------------------------------


@before("it writes a slice of a tensor in place", lambda: (rows(),), loop=True)
def _(x):
    y = x * 1
    for row in y:
        row.add_(1)
    return y


@after
def _(x):
    kept = []
    for row in x:
        kept.append(row + 1)
    return tj.stack(kept)


@before("it reads a tensor whose rows it writes", two, loop=True)
def _(x, y):
    total = y.sum() * 0
    for k in range(x.shape[0]):
        y[k] = x[k] + y.sum() * 0
    return y + total


@after
def _(x, y):
    kept = []
    for k in range(x.shape[0]):
        kept.append(x[k] + y.sum() * 0)
    return tj.stack(kept)


@before("an iteration writes a tensor twice, or in another grad mode", two, loop=True)
def _(x, y):
    y = y * 1
    for k in range(x.shape[0]):
        y[k] = x[k]
        y[k] = x[k] * 2
    return y


@after
def _(x, y):
    kept = []
    for k in range(x.shape[0]):
        kept.append(x[k] * 2)
    return tj.stack(kept)


@before("it writes a tensor at an index that is not known in advance", two, loop=True)
def _(x, y):
    y = y * 0
    for k in range(x.shape[0]):
        y[k, 0] = x[k, 0]
    return y[:, 0]


@after
def _(x, y):
    kept = []
    for row in x:
        kept.append(row[0] * 1)
    return tj.stack(kept)


@before("it fills a row with a number that changes", two, loop=True)
def _(x, y):
    y = y * 1
    for k in range(x.shape[0]):
        y[k] = k
    return y


@after
def _(x, y):
    kept = []
    for k in tj.arange(x.shape[0]):
        kept.append(k * tj.ones(2))
    return tj.stack(kept)


@before("it writes a row with too many dimensions", two, loop=True)
def _(x, y):
    y = y * 1
    for k in range(x.shape[0]):
        y[k] = x[k][None] * 2
    return y


@after
def _(x, y):
    kept = []
    for k in range(x.shape[0]):
        kept.append(x[k] * 2)
    return tj.stack(kept)


@before("it writes a tensor out of range", two, loop=True)
def _(x, y):
    y = y * 1
    for k in range(-3, x.shape[0] - 3):
        y[k] = x[k]
    return y


@after
def _(x, y):
    y = y * 1
    for k in range(x.shape[0]):
        y[k] = x[k]
    return y


@before("it writes the same memory through two tensors", two, loop=True)
def _(x, y):
    y = y * 1
    z = y[:]
    for k in range(x.shape[0]):
        y[k] = x[k]
        z[k] = x[k] * 2
    return z


@after
def _(x, y):
    y = y * 1
    z = y.clone()
    for k in range(x.shape[0]):
        y[k] = x[k]
        z[k] = x[k] * 2
    return z


@before("it writes a tensor while it uses a part of it", two, loop=True)
def _(x, y):
    z = x * 2
    for k in range(x.shape[0]):
        row = z[y[k].int().sum() * 0]
        z.add_(1)
        x = x + row
    return x


@after
def _(x, y):
    z = x * 2
    for k in range(x.shape[0]):
        row = z[y[k].int().sum() * 0] + 1
        z = z + 1
        x = x + row
    return x


@before("an iteration writes a tensor that the gradient of the previous one needs",
        lambda: (rows(), leaf()), loop=True)
def _(x, w):
    y, h = x[0] * 0, x[0] * 2
    for row in x:
        y = y + w * h
        h.add_(row)
    return y


@after
def _(x, w):
    y, h = x[0] * 0, x[0] * 2
    for row in x:
        y = y + w * h
        h = h + row
    return y


# -- lists -----------------------------------------------------------------------------------------


@before("an iteration appends to a list twice", lambda: (rows(),), loop=True)
def _(x):
    kept = []
    for row in x:
        kept.append(row * 2)
        kept.append(row * 3)
    return tj.stack(kept)


@after
def _(x):
    kept, more = [], []
    for row in x:
        kept.append(row * 2)
        more.append(row * 3)
    return tj.stack([tj.stack(kept), tj.stack(more)], 1).reshape(-1, 2)


@before("it appends under a condition, or it appends something that is no tensor",
        lambda: (rows(),), loop=True)
def _(x):
    kept = []
    for k in range(x.shape[0]):
        kept.append(k)
    return x * sum(kept)


@after
def _(x):
    kept = []
    for k in tj.arange(x.shape[0]):
        kept.append(k * 1)
    return x * tj.stack(kept).sum()


@before("it appends to a list made outside the function or outside a surrounding loop",
        lambda: (rows(), []), loop=True)
def _(x, kept):
    for row in x:
        kept.append(row * 2)
    return tj.stack(kept)


@after
def _(x, kept):
    made = []
    for row in x:
        made.append(row * 2)
    kept.extend(made)
    return tj.stack(kept)


@before("a tensor decides when it ends, and it appends to a list")
def _(x):
    kept = []
    while x.sum() < 9:
        x = x + 1
        kept.append(x)
    return kept[-1]


@after
def _(x):
    last = x * 1
    while x.sum() < 9:
        x = x + 1
        last = x * 1
    return last


@before("it reads a list that it appends to", lambda: (rows(),), loop=True)
def _(x):
    kept = []
    for row in x:
        kept.append(row * len(kept))
    return tj.stack(kept)


@after
def _(x):
    kept = []
    for k, row in enumerate(x):
        kept.append(row * k)
    return tj.stack(kept)


@before("it appends a tensor to two lists", lambda: (rows(),), loop=True)
def _(x):
    kept, more = [], []
    for row in x:
        y = row * 2
        kept.append(y)
        more.append(y)
    return kept, more


@after
def _(x):
    kept, more = [], []
    for row in x:
        y = row * 2
        kept.append(y)
        more.append(y.clone())
    return kept, more


@before("it appends a tensor that is not contiguous", lambda: (tj.ones(N, 2, 3),), loop=True)
def _(x):
    kept = []
    for row in x:
        kept.append((row * 2).t())
    return kept


@after
def _(x):
    kept = []
    for row in x:
        kept.append((row * 2).t().contiguous())
    return kept


@before("a tensor's value decides which tensor it appends", lambda: (rows(),), loop=True)
def _(x):
    kept, h = [], x[0] * 2
    for row in x:
        y = row * 2
        kept.append(y if row.sum() > 0 else h)
        h = h + 1
    return kept


@after
def _(x):
    kept, h = [], x[0] * 2
    for row in x:
        y = row * 2
        kept.append(y.clone() if row.sum() > 0 else h.clone())
        h = h + 1
    return kept


@before("it appends a tensor of a subclass", lambda: (rows(),), loop=True)
def _(x):
    kept = []
    for row in x:
        kept.append((row * 2).as_subclass(Tagged))
    return tj.stack(kept)


@after
def _(x):
    kept = []
    for row in x:
        kept.append((row * 2).as_subclass(tj.Tensor))
    return tj.stack(kept)


@before("it writes a tensor that it appends, or appends one from before the loop",
        lambda: (rows(),), loop=True)
def _(x):
    kept, h = [], x[0] * 2
    for row in x:
        kept.append(h)
        h.add_(row)
    return kept[-1]


@after
def _(x):
    kept, h = [], x[0] * 2
    for row in x:
        h = h + row
        kept.append(h.clone())
    return kept[-1]


@before("it reads a list that a loop filled", lambda: (rows(),), loop=True)
def _(x):
    kept = []
    for row in x:
        kept.append(row * 2)
    for row in x:
        x = x + row * kept[0]
    return x


@after
def _(x):
    kept = []
    for row in x:
        kept.append(row * 2)
    first = tj.stack(kept)[0]
    for row in x:
        x = x + row * first
    return x


# -- indices ---------------------------------------------------------------------------------------


@before("it indexes a tensor by a number that may be out of range", lambda: (data(), rows(8)))
def _(x, y):
    k = 0
    while x.sum() < 9:
        x = x + y[k]
        k = k + 1
    return x


@after
def _(x, y):
    for row in y:
        if x.sum() >= 9:
            break
        x = x + row
    return x


@before("it indexes a tensor by slices, a number and its index",
        lambda: (data(), tj.ones(2, 2, N)), loop=True)
def _(x, y):
    for k in range(N):
        x = x + y[:, 0, k].sum()
    return x


@after
def _(x, y):
    y = y.movedim(2, 0)
    for k in range(N):
        x = x + y[k][:, 0].sum()
    return x


@before("it indexes a tensor by its index and by other tensors",
        lambda: (tj.ones(2, N), tj.tensor([0, 1])), loop=True)
def _(x, t):
    y = x[0, 0]
    for k in range(N):
        y = y + x[t, k].sum()
    return y


@after
def _(x, t):
    y = x[0, 0]
    columns = x.t()
    for k in range(N):
        y = y + columns[k][t].sum()
    return y


@before("it takes a part of a tensor whose class has a `__torch_function__`",
        lambda: (data(), tj.ones(N, 2).as_subclass(Asked)), loop=True)
def _(x, table):
    for k in range(N):
        x = x + table[k]
    return x


@after
def _(x, table):
    table = table.as_subclass(tj.Tensor)
    for k in range(N):
        x = x + table[k]
    return x


# -- how it ends -----------------------------------------------------------------------------------


@before("a tensor decides when it ends, and it draws random numbers")
def _(x):
    while x.sum() < 9:
        x = x + tj.rand(2) * 0 + 1
    return x


@after
def _(x):
    drawn = tj.rand(2)
    while x.sum() < 9:
        x = x + drawn * 0 + 1
    return x


@before("the body leaves the loop or the function")
def _(x):
    while x.sum() < 9:
        x = x + 1
        break
    return x


@after
def _(x):
    if x.sum() < 9:
        x = x + 1
    return x


@before("its test may raise an error, and its body may leave the loop first",
        lambda: (data(), tj.ones(20)))
def _(x, y):
    while y[x.sum().long()] < 9:
        x = x + 1
        if x.sum() > 8:
            break
    return x


@after
def _(x, y):
    while x.sum() <= 8 and y[x.sum().long().clamp(0, 19)] < 9:
        x = x + 1
    return x


@before("the returned value is a tensor in one case and a tuple of 2 in the other")
def _(x):
    while x.sum() < 9:
        x = x + 1
        if x.sum() > 5:
            return x
    return x, x


@after
def _(x):
    while x.sum() < 9:
        x = x + 1
        if x.sum() > 5:
            return x
    return x * 1


@before("it asks if two variables are one tensor", some(3))
def _(x, a, b):
    while x.sum() < 9:
        x = x + (1 if a is b else 2)
        a, b = b * 1, a * 1
    return x


@after
def _(x, a, b):
    while x.sum() < 9:
        x = x + 2
        a, b = b * 1, a * 1
    return x


@before("it asks which tensor a variable is", some(2))
def _(x, a):
    while x.sum() < 9:
        x = x + (1 if a in {x: 1} else 2)
        a = a * 1
    return x


@after
def _(x, a):
    while x.sum() < 9:
        x = x + 2
        a = a * 1
    return x


@before("different iterations give gradients to different tensors",
        lambda: (rows(), leaf()), loop=True)
def _(x, w):
    a, b = w * 1, w.detach() * 1
    for row in x:
        a, b = b * row, a * row
    return a, b


@after
def _(x, w):
    a, b = w * 1, w * 1
    for row in x:
        a, b = b * row, a * row
    return a, b


@before("a tensor gets a gradient only after several iterations",
        lambda: (rows(), tj.tensor(3.0), leaf()), loop=True)
def _(x, limit, w):
    h = tj.zeros(2)
    for t in range(x.shape[0]):
        if (h + x[t]).abs().sum() > limit:
            return h + x[t]
        h = tj.tanh(x[t] + h * w)
    return h


@after
def _(x, limit, w):
    h, done = tj.zeros(2) * w, tj.tensor(False)
    for t in range(x.shape[0]):
        new = h + x[t]
        over = (new.abs().sum() > limit) & ~done
        h = tj.where(done, h, tj.where(over, new, tj.tanh(x[t] + h * w)))
        done = done | over
    return h


@before("the returned value is a view", lambda: (tj.ones(2, 2),), loop=True)
def _(x):
    y = x[0]
    for _ in range(N):
        if y.sum() > 1e9:
            return y
        y = y + 1
    return y


@after
def _(x):
    y = x[0].clone()
    for _ in range(N):
        if y.sum() > 1e9:
            return y.clone()
        y = y + 1
    return y
