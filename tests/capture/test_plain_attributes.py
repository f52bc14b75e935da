"""The user's code finds on a number that changes between calls what a plain number has."""

import numpy as np
import pytest

import tracejit

QUESTIONS = {
    "asks for a shape": lambda n: hasattr(n, "shape"),
    "asks for a dtype": lambda n: getattr(n, "dtype", None) is not None,
    "asks for what our numbers keep": lambda n: hasattr(n, "value") or hasattr(n, "op"),
    "asks for our names": lambda n: hasattr(n, "name") or hasattr(n, "kind"),
    "asks for a method of tensors": lambda n: hasattr(n, "expand"),
    "asks if it is an array": lambda n: hasattr(n, "__array__") or hasattr(n, "__array_ufunc__"),
    "asks for its dictionary": lambda n: hasattr(n, "__dict__"),
    "lists its attributes": lambda n: {"shape", "hint"} & set(dir(n)),
    "reads an attribute": lambda n: n.real > 1,
    "calls a method": lambda n: n.as_integer_ratio()[0] > 3,
    "makes an array": lambda n: np.asarray(n).dtype.kind == "f",
    "asks NumPy for a shape": lambda n: np.shape(n) == (),
    "catches the error": lambda n: raised(lambda: len(n.shape)),
    "asks for variables": lambda n: raised(lambda: vars(n)),
    "sets an attribute": lambda n: raised(lambda: setattr(n, "value", 3)),
    "deletes an attribute": lambda n: raised(lambda: delattr(n, "hint")),
}


def raised(action):
    try:
        action()
    except (AttributeError, TypeError) as error:
        return "object" in str(error) and "'Sym" not in str(error)
    return False


# Each of these is a number that capture knows only when the program runs.
NUMBERS = {
    "argument": lambda x, n: n,
    "computed": lambda x, n: n * 2 + 1,
    "size": lambda x, n: x.shape[0],
    "read from a tensor": lambda x, n: x.sum().item(),
}


def program(number, question):
    def called(x, n):
        if question(number(x, n)):
            return x * 2
        return x * 3 + n

    return called


@pytest.mark.parametrize("jit", [tracejit.trace, tracejit.script])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_number_shows_what_a_plain_number_has(jit, number, question):
    plain = program(NUMBERS[number], QUESTIONS[question])
    captured = jit(plain)
    for rows, n in [(2, 0.5), (3, 0.75), (4, 1.25), (2, 3), (5, 4), (3, 0)]:
        x = tracejit.arange(1.0, rows + 1)
        assert captured(x, n).tolist() == plain(x, n).tolist(), (rows, n)


@pytest.mark.parametrize("value", [3, 0.5])
def test_an_absent_attribute_is_pythons_own_error(value):
    def called(x, n):
        return x * len(n.shape)

    for n in (value, value + 1, value + 2):
        with pytest.raises(AttributeError) as plain:
            called(tracejit.ones(2), n)
        for jit in (tracejit.trace, tracejit.script):
            with pytest.raises(AttributeError) as captured:
                jit(called)(tracejit.ones(2), n)
            assert str(captured.value) == str(plain.value)


def test_texts_show_what_plain_texts_have():
    def called(x):
        text = f"{x.sum().item():.2f}"
        if hasattr(text, "value") or hasattr(text, "operands") or not hasattr(text, "upper"):
            return x * 2
        return x * 3

    captured = tracejit.script(called)
    for n in (2, 2, 3):
        assert captured(tracejit.ones(n)).tolist() == [3.0] * n


@pytest.mark.parametrize("question", QUESTIONS)
def test_so_does_one_that_is_asked_in_a_branch_of_the_graph(question):
    asked = QUESTIONS[question]

    def called(x, n):
        if x.sum() > 2:
            if asked(n):
                x = x * 2
            else:
                x = x * 3 + n
        return x

    captured = tracejit.script(called)
    for rows, n in [(2, 0.5), (3, 0.75), (1, 1.25), (2, 3), (5, 4), (3, 0)]:
        x = tracejit.arange(1.0, rows + 1)
        assert captured(x, n).tolist() == called(x, n).tolist(), (rows, n)


def test_a_size_has_no_attributes_of_the_compiler():
    def f(x):
        size = x.shape[0]
        return x * (1 if hasattr(size, "terms") else 2) * (getattr(size, "scope", None) or 3)

    for jit in (tracejit.script, tracejit.trace):
        assert jit(f)(tracejit.ones(2)).tolist() == [6.0, 6.0]
