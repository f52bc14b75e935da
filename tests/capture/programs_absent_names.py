"""Programs that ask for names that nothing has yet: globals, builtins, variables of the function
around. They come later, and may go again.
"""

import builtins

import tracejit as tj
from tests.capture.program_list import programs_in


def _x():
    return tj.tensor([1.0, 2.0])


def builtin_comes_and_goes(jit):
    @jit
    def f(x):
        try:
            return x + LATE_NAME
        except NameError:
            return x

    out = [f(_x()), f(_x())]
    try:
        for value in (3.0, tj.ones(2), 4.0):
            builtins.LATE_NAME = value
            out += [f(_x()), f(_x())]
    finally:
        del builtins.LATE_NAME
    return [*out, f(_x())]


def global_goes_and_a_builtin_is_seen(jit):
    @jit
    def f(x):
        try:
            return x * sum((LATE_GLOBAL, 1.0))
        except NameError:
            return x - 1

    out = [f(_x()), f(_x())]
    try:
        globals()["LATE_GLOBAL"] = 5.0
        out.append(f(_x()))
        builtins.LATE_GLOBAL = 7.0
        out.append(f(_x()))
        del globals()["LATE_GLOBAL"]
        out.append(f(_x()))
        globals()["sum"] = max
        out.append(f(_x()))
    finally:
        del builtins.LATE_GLOBAL
        globals().pop("sum", None)
    return [*out, f(_x())]


def builtins_of_the_functions_own(jit):
    """A dict of globals may bring its builtins along."""
    own = {"NameError": NameError}
    space = {"__builtins__": own}
    exec("def f(x):\n    try: return x + late\n    except NameError: return x", space)
    f = jit(space["f"])
    out = [f(_x()), f(_x())]
    for value in (2.0, tj.ones(2)):
        own["late"] = value
        out += [f(_x()), f(_x())]
    del own["late"]
    return [*out, f(_x())]


def variable_around_comes_and_goes(jit):
    @jit
    def f(x):
        try:
            return x + k
        except NameError:
            return x

    out = [f(_x()), f(_x())]
    k = 3.0
    out += [f(_x()), f(_x())]
    del k
    out += [f(_x()), f(_x())]
    k = tj.ones(2)
    out += [f(_x()), f(_x())]
    del k
    return [*out, f(_x())]


def variable_of_a_helper_comes_and_goes(jit):
    def helper(x):
        try:
            return x * k
        except NameError:
            return x - 1

    @jit
    def f(x):
        return helper(x) + 1

    out = [f(_x()), f(_x())]
    k = 3.0
    out += [f(_x()), f(_x())]
    del k
    out += [f(_x()), f(_x())]
    k = tj.ones(2)
    return [*out, f(_x())]


def variable_is_assigned_by_a_call(jit):
    """The first call finds none, and assigns it."""
    def around():
        @jit
        def f(x):
            nonlocal count
            try:
                count = count + 1
            except NameError:
                count = 0
            return x * count

        def forget():
            nonlocal count
            del count

        count = 0
        del count
        return f, forget

    f, forget = around()
    out = [f(_x()) for _ in range(4)]
    forget()
    return out + [f(_x()) for _ in range(3)]


def class_around_is_made_later(jit):
    @jit
    def f(x):
        try:
            return x * Late.k
        except NameError:
            return x

    out = [f(_x()), f(_x())]

    class Late:
        k = 2.0

    out.append(f(_x()))
    Late.k = 5.0
    return [*out, f(_x())]


PROGRAMS = programs_in(globals())
