"""What ends a graph or keeps a call from being replayed: values read, effects, results, state."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import pickle
import random
import threading
import time
import warnings
import weakref

import numpy as np

import tracejit as tj
from tests.errors.control_flow import Box, data, leaf
from tests.errors.entries import breaks, raises
from tracejit import nn

# -- values that the host reads --------------------------------------------------------------------


@breaks("the function calls item(), and its number is compared")
def item_decides(jit):
    @jit
    def f(x):
        k = x[0].item()
        return x * 2 if k > 0 else x  # here

    f(data())


@breaks("the function calls item(), and its number is computed with")
def item_is_computed_with(jit):
    @jit
    def f(x):
        k = x[0].item()
        return x * (1.0 / k)  # here

    f(data())


@breaks("the function calls item(), and its number is hashed")
def item_is_a_key(jit):
    table = {1.0: 2.0}

    @jit
    def f(x):
        k = x[0].item()
        return x * table[k]  # here

    f(data())


@breaks("the function calls item(), and its number is needed at once")
def item_becomes_an_int(jit):
    @jit
    def f(x):
        return x * len("a" * int(x[0]))  # here

    f(data())


@breaks("the function calls item()")
def item_of_a_bool(jit):
    @jit
    def f(x):
        flag = (x[0] > 0).item()  # here
        return x * flag

    f(data())


@breaks("the function calls item(), and its number is needed at once")
def item_is_given_to_a_function(jit):
    @jit
    def f(x):
        return x * np.float32(x[0].item())  # here

    f(data())


@breaks("the function calls item(), and its number is needed at once")
def item_is_a_size(jit):
    @jit
    def f(x):
        return x.sum() * tj.ones(int(x[0].item()))  # here

    f(data())


@breaks("the function calls item(), and its number is a bound of range()")
def item_is_a_bound(jit):
    @jit
    def f(x, n):
        for k in range(n.item()):  # here
            x = x + k
        return x

    f(data(), tj.tensor(3))


@breaks("the function calls item(), and its number is needed at once by roll()")
def item_is_a_shift(jit):
    @jit
    def f(x, n):
        return x.roll(n.item())  # here

    f(data(), tj.tensor(1))


@breaks("the function calls tolist()")
def tolist(jit):
    @jit
    def f(x):
        return x * sum(x.tolist())  # here

    f(data())


@breaks("the function calls numpy()")
def numpy(jit):
    @jit
    def f(x):
        return x * 2, (x + 1).numpy()  # here

    f(data())


@breaks("NumPy makes an array from a tensor")
def array_of_numpy(jit):
    @jit
    def f(x):
        return x * 2, np.asarray(x + 1)  # here

    f(data())


@breaks("tracejit has no op for np.logaddexp\nhint: use tracejit's own function")
def function_of_numpy(jit):
    @jit
    def f(x):
        return np.logaddexp(x, x)  # here

    f(data())


@breaks(
    "a: the function reads this numpy.ndarray, and tracejit cannot see its changes",
    "an array shows a tensor's memory\nhint: use tracejit.tensor(array), which copies",
)
def tensor_over_an_array(jit):
    a = np.ones(2, "float32")

    @jit  # here
    def f(x):
        return x * tj.from_numpy(a)  # here

    f(data())


@breaks("Python needs to know if a tensor is true")
def truth_without_source(jit):
    @jit
    def f(x):
        return x * 2 if bool(x.sum() > 0) else x  # here

    f(data())


@breaks("Python needs to know if a tensor is true", jit=tj.trace)
def truth_in_a_traced_function(jit):
    @jit
    def f(x):
        return x * 2 if x.sum() > 0 else x  # here

    f(data())


@breaks(
    "the function calls _pickle.dumps; tracejit cannot see what it reads or changes\nhint: call "
    "it outside the captured function",
    "the function pickles a tensor",
)
def pickled(jit):
    @jit
    def f(x):
        return x * len(pickle.dumps(x + 1))  # here

    f(data())


@breaks("the function calls data_ptr()")
def address_is_read(jit):
    @jit
    def f(x):
        y = x + 1
        return y, y.data_ptr() > 0  # here

    f(data())


@breaks("the function reads _version of a tensor made outside it")
def version_of_an_argument(jit):
    @jit
    def f(x):
        return x * x._version  # here

    f(data())


@breaks("the function reads _is_view() of a tensor made outside it")
def is_view_of_an_argument(jit):
    @jit
    def f(x):
        return x * x._is_view()  # here

    f(data())


@breaks("the function reads _base of a tensor made outside it")
def base_of_an_argument(jit):
    @jit
    def f(x):
        return x * (x._base is None)  # here

    f(data())


@breaks("the function reads retains_grad of a tensor made outside it")
def retains_grad_of_an_argument(jit):
    @jit
    def f(x):
        return x * x.retains_grad  # here

    f(data())


@breaks("the function reads a storage", "the function reads or writes a storage\nhint: use tensors")
def storage_is_read(jit):
    @jit
    def f(x):
        return x * x.untyped_storage().nbytes()  # here

    f(data())


# -- sizes that values decide ----------------------------------------------------------------------


@breaks(
    "the shape of nonzero's result depends on a tensor's values\nhint: keep the shape: "
    "tracejit.where(mask, x, 0), x.masked_fill(...), or sums weighted by the mask",
)
def nonzero(jit):
    @jit
    def f(x):
        return tj.nonzero(x) * 2  # here

    f(data())


@breaks(
    "the shape of nonzero's result depends on a tensor's values\nhint: keep the shape: "
    "tracejit.where(mask, x, 0), x.masked_fill(...), or sums weighted by the mask",
)
def mask_as_an_index(jit):
    @jit
    def f(x):
        return x[x > 1] * 2  # here

    f(data())


@breaks(
    "the shape of unique's result depends on a tensor's values\nhint: compute it outside of the "
    "captured function",
)
def unique(jit):
    @jit
    def f(x):
        return tj.unique(x) * 2  # here

    f(data())


@breaks(
    "the shape of bincount's result depends on a tensor's values\nhint: "
    "tracejit.zeros(n).index_add(0, input, ones) has a fixed number of bins",
)
def bincount(jit):
    @jit
    def f(x):
        return tj.bincount(x) * 2  # here

    f(tj.tensor([1, 2]))


@breaks(
    "the shape of repeat_positions's result depends on a tensor's values\nhint: repeat by a "
    "number, or gather at positions that were computed outside",
)
def repeat_interleave(jit):
    @jit
    def f(x, n):
        return x.repeat_interleave(n) * 2  # here

    f(data(), tj.tensor([1, 2]))


# -- memory ----------------------------------------------------------------------------------------


@breaks("the function reads memory that it wrote through an overlapping tensor")
def write_to_overlapping_memory(jit):
    @jit
    def f(x, y):
        x.add_(1)
        return y * 2  # here

    memory = tj.ones(6)
    f(memory[:4], memory[2:])


@breaks("the function reads memory that it wrote through an overlapping tensor")
def read_of_overlapping_memory(jit):
    @jit
    def f(x, y):
        z = x + 1
        x.copy_(z)
        return y * 2  # here

    memory = tj.ones(6)
    f(memory[:4], memory[:4])
    f(memory[:4], memory[2:])


@breaks("the function replaces tensor.data\nhint: write into it: tensor.data.copy_(...)")
def data_is_replaced(jit):
    @jit
    def f(x):
        x.data = x * 2  # here
        return x

    f(data())


@breaks("the function changes the shape of a tensor in place\nhint: use the function that returns "
        "a new view")
def shape_of_a_view_changes(jit):
    @jit
    def f(x):
        row = x[0]
        row.unsqueeze_(0)  # here
        return x * row

    f(data())


@breaks(
    "the function calls set_()",
    "the function replaces tensor.data\nhint: write into it: tensor.data.copy_(...)",
)
def set_is_called(jit):
    @jit
    def f(x, y):
        x.set_(y)  # here
        return x * 2

    f(data(), data())


@breaks("the function calls swap_tensors")
def swapped(jit):
    @jit
    def f(x, y):
        tj.utils.swap_tensors(x, y)  # here
        return x * 2

    f(data(), data())


@breaks("the function calls is_set_to()")
def is_set_to(jit):
    @jit
    def f(x, y):
        return x * x.is_set_to(y)  # here

    f(data(), data())


# -- calls -----------------------------------------------------------------------------------------


@breaks(
    "the function calls time.time; tracejit cannot see what it reads or changes\nhint: call it "
    "outside the captured function",
)
def clock(jit):
    @jit
    def f(x):
        return x * time.time()  # here

    f(data())


@breaks(
    "the function calls Random.random; tracejit cannot see what it reads or changes\nhint: call "
    "it outside the captured function",
)
def random_of_python(jit):
    @jit
    def f(x):
        return x * random.random()  # here

    f(data())


@breaks(
    "the branch runs as Python: it calls cached_function_in_a_side.<locals>.table, and tracejit "
    "cannot see its effects",
)
def cached_function_in_a_side(jit):
    @functools.lru_cache
    def table(n):
        return tj.ones(2) * n

    @jit
    def f(x):
        return x * table(3) if x.sum() > 0 else x  # here

    f(data())


@breaks(
    "the function calls checkpoint\nhint: call the checkpointed function itself; capture decides "
    "what to keep",
    "the function reads the state of a generator\nhint: make, seed and save generators outside "
    "the captured function",
)
def checkpoint(jit):
    from tracejit.utils.checkpoint import checkpoint

    @jit
    def f(x):
        return checkpoint(tj.tanh, x, use_reentrant=False)  # here

    f(leaf())


@breaks(
    "the function uses saved_tensors_hooks\nhint: use it outside the captured function",
)
def saved_tensors_hooks(jit):
    @jit
    def f(x):
        with tj.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):  # here
            return x.tanh()

    f(leaf())


@breaks("the function registers a hook of all modules\nhint: register it outside")
def hook_of_all_modules(jit):
    @jit
    def f(x):
        nn.modules.module.register_module_forward_hook(lambda *a: None).remove()  # here
        return x * 2

    f(data())


@breaks("the function saves a file\nhint: save and load outside the captured function")
def saving(jit):
    import io

    @jit
    def f(x):
        tj.save(x + 1, io.BytesIO())  # here
        return x * 2

    f(data())


@breaks(
    "file: the function reads this _io.BytesIO, and tracejit cannot see its changes",
    "the function loads a file\nhint: save and load outside the captured function",
)
def loading(jit):
    import io

    @jit
    def f(x, file):
        return x * tj.load(file)  # here

    file = io.BytesIO()
    tj.save(data(), file)
    file.seek(0)
    f(data(), file)  # here


@breaks("the function sets print options")
def print_options(jit):
    before = tj.tensor(0.5)

    @jit
    def f(x):
        tj.set_printoptions(precision=4)  # here
        return x * before

    f(data())


@breaks("the function counts its operations")
def flops_are_counted(jit):
    from tracejit.utils.flop_counter import FlopCounterMode

    @jit
    def f(x):
        with FlopCounterMode(display=False):  # here
            return x @ x

    f(data())


@breaks("the function runs the __torch_function__ of a class or mode")
def override_protocol(jit):
    class Other:
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return 3.0

    other = Other()

    @jit
    def f(x):
        return x * tj.add(x, other)  # here

    f(data())


# -- the generator ---------------------------------------------------------------------------------


@breaks(
    "the function seeds a generator\nhint: make, seed and save generators outside the captured "
    "function",
)
def seeded(jit):
    @jit
    def f(x):
        tj.manual_seed(0)  # here
        return x * tj.rand(2)

    f(data())


@breaks(
    "the function makes a generator\nhint: make, seed and save generators outside the captured "
    "function",
)
def generator_made(jit):
    @jit
    def f(x):
        g = tj.Generator()  # here
        return x * tj.rand(2, generator=g)

    f(data())


@breaks(
    "the function reads the state of a generator\nhint: make, seed and save generators outside "
    "the captured function",
)
def generator_state_read(jit):
    @jit
    def f(x):
        tj.get_rng_state()  # here
        return x * tj.rand(2)

    f(data())


# -- modes -----------------------------------------------------------------------------------------


@breaks("the function leaves grad mode, autocast or a default changed\nhint: use `with "
        "tracejit.no_grad():`")
def grad_mode_left_changed(jit):
    @jit
    def f(x):
        tj.set_grad_enabled(False)
        return x * 2

    try:
        f(data())  # here
    finally:
        tj.set_grad_enabled(True)


@breaks("the function changes the filters of warnings")
def filters_of_warnings_left_open(jit):
    stack = contextlib.ExitStack()

    @jit
    def f(x):
        stack.enter_context(warnings.catch_warnings())
        return x * 2

    with stack:
        f(data())  # here


# -- state that is read ----------------------------------------------------------------------------


@breaks("table: the function reads this numpy.ndarray, and tracejit cannot see its changes")
def array_is_read(jit):
    table = np.ones(2, "float32")

    @jit  # here
    def f(x):
        return x * table[0]

    f(data())


@breaks("it: the function reads this itertools.count, and tracejit cannot see its changes")
def iterator_is_read(jit):
    @jit
    def f(x, it):
        return x * next(it)

    f(data(), itertools.count(1))  # here


@breaks("proxy: the object of a weak proxy is gone")
def dead_proxy(jit):
    box = Box(scale=2.0)
    proxy = weakref.proxy(box)
    del box

    @jit  # here
    def f(x):
        try:
            return x * proxy.scale
        except ReferenceError:
            return x

    f(data())


@breaks("numbers: the function reads this container of 60000 elements")
def large_container(jit):
    numbers = list(range(60_000))

    @jit  # here
    def f(x):
        return x * numbers[1]

    f(data())


@breaks(
    "given: the function reads this builtins.list_iterator, and tracejit cannot see its changes",
    "tracejit cannot find the function closure_found_nowhere.<locals>.make.<locals>.<lambda>, "
    "which closes over variables",
)
def closure_found_nowhere(jit):
    def make(k):
        return lambda x: x * k  # here

    made = [iter([make(2.0)])]

    @jit
    def f(x, given):
        return next(given)(x)

    f(data(), made[0])  # here


# -- results ---------------------------------------------------------------------------------------


@breaks("the function returns or stores a builtins.function")
def function_is_returned(jit):
    @jit
    def f(x):
        return x * 2, lambda: x

    f(data())  # here


@breaks("the function returns or stores a builtins.generator")
def generator_is_returned(jit):
    @jit
    def f(x):
        return (x * k for k in range(2))

    list(f(data()))  # here


@breaks("the function returns or stores a builtins.set")
def set_is_returned(jit):
    @jit
    def f(x):
        return x * 2, {x + 1}

    f(data())  # here


@breaks("the function returns or stores a builtins.type")
def class_is_returned(jit):
    @jit
    def f(x):
        class Made:
            scale = x * 2

        return Made

    f(data())  # here


@breaks("the function returns or stores a numpy.ndarray")
def array_is_returned(jit):
    @jit
    def f(x):
        return x * 2, np.ones(2)

    f(data())  # here


@breaks("the function returns or stores a tracejit.nn.linear.Identity")
def module_is_returned(jit):
    @jit
    def f(x):
        return x * 2, nn.Identity()

    f(data())  # here


@breaks("the function returns or stores a dict with keys that it made")
def dict_with_made_keys(jit):
    @jit
    def f(x):
        return {x + 1: x}

    f(data())  # here


@breaks("the function returns or stores a dict with keys that it made")
def counter_with_made_keys(jit):
    @jit
    def f(x):
        made = collections.Counter()
        made[x + 1] = 2
        return made

    f(data())  # here


@breaks("the function returns or stores a defaultdict whose factory is no builtin")
def defaultdict_of_the_users(jit):
    @jit
    def f(x):
        return collections.defaultdict(Box, a=x * 2)

    f(data())  # here


@breaks("the function returns or stores a container that holds itself")
def list_that_holds_itself(jit):
    @jit
    def f(x):
        made = [x * 2]
        made.append(made)
        return made

    f(data())  # here


@breaks("the function returns or stores a Counted that it made")
def class_of_tensors(jit):
    class Counted(tj.Tensor):
        made = 0

        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            return super().__torch_function__(function, types, args, kwargs or {})

    @jit
    def f(x):
        return (x * 2).as_subclass(Counted)

    f(data())  # here


@breaks("the function returns or stores a tensor with attributes of its own")
def attributes_of_a_tensor(jit):
    @jit
    def f(x):
        y = x * 2
        y.tag = "doubled"
        return y

    f(data())  # here


# -- state that is changed -------------------------------------------------------------------------


@breaks("the function changes requires_grad, history or hooks of a tensor made outside it")
def history_changes(jit):
    w = leaf()

    @jit
    def f(x):
        w.requires_grad_(False)
        return x * 2

    f(data())  # here


# -- tensors that left the call --------------------------------------------------------------------


@raises(
    RuntimeError,
    "a tensor made while f was captured (<y = x * 2>: y = x * 2) is used outside of it, before it "
    "was computed, at <here>: found.append(y + 1)  # here; return it from f, and use it when the "
    "call is over",
    plainly=False,
)
def tensor_used_by_another_thread(jit):
    @jit
    def f(x):
        found = []
        y = x * 2

        def use():
            try:
                found.append(y + 1)  # here
            except RuntimeError as error:
                found.append(error)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        if isinstance(found[0], Exception):
            raise found[0]
        return y

    f(data())


# -- state that is changed -------------------------------------------------------------------------


@breaks("n: new code reads a number that this call stored")
def variable_that_another_function_reads(jit):
    def make():
        n = 0

        def count(x):
            nonlocal n
            n += 1
            return x * n

        return count, lambda: n  # here

    first, read = make()

    @jit
    def f(x):
        return first(x) + read()

    f(data())


@breaks("the function writes a tensor whose values decided what Python did")
def counter_that_decides(jit):
    step, log = tj.zeros(()), []

    @jit
    def f(x):
        step.add_(1)
        if step > 3:
            log.append(float(x[0]))
            x = x * 2
        return x

    f(data())  # here


@breaks(
    "cached_result_is_changed.<locals>.table caches results (functools.lru_cache), and it ran or "
    "gave an object that may change",
)
def cached_result_is_changed(jit):
    made = []

    @functools.cache
    def table(n):
        made.append(n)
        return tj.arange(float(n))

    @jit
    def f(x, n):
        return x.sum() * table(n)

    f(data(), 3)
    f(data(), 4)  # here


@breaks("the function asks if two equal constants are one object\nhint: compare with `==`")
def equal_texts_compared_by_identity(jit):
    @jit
    def f(x, one, other):
        return x * (2.0 if one is other else 3.0)  # here

    f(data(), "a b", "".join(["a", " b"]))


@breaks("the function asks if two equal constants are one object\nhint: use `math.isnan`")
def nan_in_a_list(jit):
    nan = float("nan")

    @jit
    def f(x, numbers):
        return x * (2.0 if nan in numbers else 3.0)  # here

    f(data(), [nan, 1.0])


@breaks("the function changes the set seen", fullgraph=False)
def set_grows_by_sizes(jit):
    seen = set()

    @jit
    def f(x):
        seen.add(x.shape[0])
        return x * len(seen)

    f(tj.ones(1))
    f(tj.ones(2))  # here


@breaks("the function calls item(), and its number is used in a tensor operation")
def number_of_a_loop_that_ended(jit):
    @jit
    def f(x, limit):
        total = tj.zeros(())
        for t in range(x.shape[0]):
            total = total + x[t].abs().sum()
            if total > limit:
                break
        return total * t, t  # here

    f(tj.ones(4, 2), tj.tensor(4.0))


@breaks("the function calls item(), and its number is compared")
def optimizer_with_a_number_of_a_tensor(jit):
    w = leaf()

    @jit
    def f(x):
        optimizer = tj.optim.SGD([w], lr=x[0].item())  # here
        w.grad = x * 2
        optimizer.step()
        return x * 2

    f(data())


@breaks(
    "the function calls globals; tracejit cannot see what it reads or changes\nhint: call it "
    "outside the captured function",
)
def global_that_shadows(jit):
    @jit
    def f(x):
        globals()["LENGTH"] = x.shape[0]  # here
        return x * 2

    f(data())
