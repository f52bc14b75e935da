"""Programs that keep values in a `deque`: appended to, read, rotated, bounded, of numbers."""

from __future__ import annotations

import collections

import tracejit as tj
from tests.capture.program_list import programs_in


class Box:
    """Anything."""

    def __init__(self, **held):
        self.__dict__.update(held)


def two():
    return tj.tensor([1.0, -2.0])


def window_that_is_only_appended_to(jit):
    window, all_of_them = collections.deque(maxlen=3), collections.deque()

    def f(x):
        window.append(x.sum().item())
        all_of_them.append(x * 2)
        return x * 2

    f = jit(f)
    return [f(two() * k) for k in range(7)] + [list(window), window.maxlen, list(all_of_them)]


def window_that_gets_the_same_twice(jit):
    window = collections.deque([7, 8, 9], maxlen=3)

    def f(x):
        window.append(5)
        window.append(5)
        return x * 2

    f = jit(f)
    out = [f(two()), list(window), f(two()), list(window)]
    for more in ([1, 2, 3], [11, 12, 13], [5, 1, 5]):
        window.extend(more)
        out += [f(two()), list(window)]
    return out


def window_that_is_read(jit):
    window = collections.deque([1.0], maxlen=3)

    def f(x):
        window.append(x.sum())
        return sum(window) * len(window)

    f = jit(f)
    return [f(two() * k) for k in range(6)] + [list(window)]


def queue_of_tensors(jit):
    queue = collections.deque([tj.tensor(1.0), tj.tensor(2.0), tj.tensor(3.0)])

    def f(x):
        y = queue.popleft()
        queue.append(y * 2)
        queue.rotate(1)
        return x * y

    f = jit(f)
    return [f(two()) for _ in range(5)] + [list(queue)]


def windows_made_inside(jit):
    def f(x):
        window = collections.deque(maxlen=2)
        for k in range(4):
            window.append(x * k)
        window.appendleft(x)
        return window, window.popleft() + window[-1] + window.maxlen

    f, out = jit(f), []
    for _ in range(3):
        window, total = f(two())
        out += [list(window), window.maxlen, total]
    return out


def windows_of_other_lengths(jit):
    box = Box(window=collections.deque([1.0, 2.0], maxlen=2))

    def f(x):
        box.window.append(3.0)
        return x * len(box.window) * box.window.maxlen

    f = jit(f)
    out = [f(two()), f(two())]
    box.window = collections.deque([1.0, 2.0], maxlen=5)
    out += [f(two()), f(two()), list(box.window)]
    box.window = [1.0]
    box.window.append(2.0)
    box.window = collections.deque(box.window)
    box.window.rotate(1)
    g = jit(lambda x: x * sum(box.window) + box.window[0])
    out += [g(two()), g(two())]
    box.window.rotate(1)
    out += [g(two())]
    box.window.appendleft(4.0)
    return [*out, g(two())]


def numbers_in_a_window(jit):
    box = Box(window=collections.deque([1.0, 2.0]), n=0)

    def f(x):
        box.window[0] = box.window[0] + 1
        box.n += 1
        box.window.append(box.n)
        if len(box.window) > 4:
            box.window.popleft()
        return x * box.window[0]

    f = jit(f)
    return [f(two()) for _ in range(7)] + [list(box.window)]


def one_window_under_two_names(jit):
    window = collections.deque([1.0], maxlen=4)
    box = Box(a=window, b=window)

    def f(x):
        box.a.append(x.sum())
        return x * len(box.b)

    f = jit(f)
    out = [f(two()) for _ in range(3)]
    box.b = collections.deque([1.0])
    return out + [f(two()) for _ in range(3)] + [list(box.a), list(box.b)]


class Smooth:
    """A metric over its last values."""

    def __init__(self):
        self.last, self.total, self.count = collections.deque(maxlen=4), 0.0, 0

    def update(self, value):
        self.last.append(value)
        self.count += 1
        self.total += value

    def median(self):
        return sorted(self.last)[len(self.last) // 2]


def smoothed_metric(jit):
    meter = Smooth()

    def f(x):
        meter.update(x.sum().item())
        return x * 2

    f, out = jit(f), []
    for k in range(7):
        out += [f(two() * k), meter.median(), meter.total, meter.count]
    return out


def window_of_a_class_of_its_own(jit):
    class Window(collections.deque):
        def mean(self):
            return sum(self) / len(self)

    window = Window([1.0, 2.0], maxlen=3)

    def f(x):
        window.append(x.sum().item())
        return x * 2

    f, g, out = jit(f), jit(lambda x: x * window.mean()), []
    for k in range(5):
        out += [f(two() * k), g(two())]
    return [*out, list(window)]


def window_as_an_argument(jit):
    def f(x, window):
        window.append(x * 2)
        return window[0]

    f, window, out = jit(f), collections.deque([two()], maxlen=2), []
    for _ in range(4):
        out += [f(two(), window), list(window)]
    return out


PROGRAMS = programs_in(globals())
