"""Programs that pickle plain data as they run, as caches of properties make their keys."""

from __future__ import annotations

import pickle

import tracejit as tj
from tests.capture.program_list import programs_in


def pickle_of_options_is_a_key(jit):
    made = {}

    def f(x, **options):
        key = pickle.dumps(options)
        made[key] = made.get(key, 0) + 1
        return x * len(key), key

    f = jit(f)
    found = [f(tj.ones(2)) for _ in range(3)]
    found += [f(tj.ones(2), rate=rate, name=name)
              for rate, name in ((1, "a"), (1, "a"), (1.0, "a"), (True, "b"), (2, "bc"), (1, "a"))]
    return [*found, f(tj.ones(2), a=(1, [2, None])), f(tj.ones(2), a=[1, [2, None]]), made]


def pickle_of_what_the_caller_changes(jit):
    held = {"rate": 0.5, "sizes": [1, 2]}
    f = jit(lambda x: (x * 2, pickle.dumps(held, protocol=4)))
    found = [f(tj.ones(2)) for _ in range(3)]
    held["sizes"].append(3)
    found += [f(tj.ones(2)), f(tj.ones(2))]
    held["rate"] = -0.0
    found += [f(tj.ones(2)), f(tj.ones(2))]
    held["rate"] = 0.0
    found.append(f(tj.ones(2)))
    held["name"] = "rate"  # equal to a key
    found += [f(tj.ones(2)), f(tj.ones(2))]
    held["rate"] = held.pop("rate")  # another order
    del held["name"]
    return [*found, f(tj.ones(2)), f(tj.ones(2))]


def pickle_of_one_object_twice(jit):
    held = {"a": [1], "b": [1]}
    f = jit(lambda x: (x * 2, len(pickle.dumps(held))))
    found = [f(tj.ones(2)) for _ in range(3)]
    held["b"] = held["a"]
    found += [f(tj.ones(2)), f(tj.ones(2))]
    held["b"] = [1]
    return [*found, f(tj.ones(2))]


def pickle_of_equal_texts(jit):
    one = "".join(["te", "xt"])
    held = [one, one]
    f = jit(lambda x: (x * 2, len(pickle.dumps(held))))
    found = [f(tj.ones(2)) for _ in range(3)]
    held[1] = "".join(["tex", "t"])
    return [*found, f(tj.ones(2)), f(tj.ones(2))]


def pickle_of_an_object(jit):
    class_of = Options
    held = class_of()
    f = jit(lambda x: (x * held.rate, len(pickle.dumps(held)) > 150))
    found = [f(tj.ones(2)) for _ in range(3)]
    held.name = "long" * 90
    return [*found, f(tj.ones(2))]


class Options:
    rate = 2.0


def pickle_of_numbers_that_change(jit):
    f = jit(lambda x, n: (x * n, pickle.dumps([n, n + 1])))
    return [f(tj.ones(2), n) for n in (1, 2, 3, 4, 1.5, 2.5, 3.5, 1)]


PROGRAMS = programs_in(globals())
