"""What a captured function follows must not be told from a plain list or number, in errors or
otherwise."""

from __future__ import annotations

import importlib.util
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import tracejit as tj

LISTS = """l.clone()|type(l).__name__|l.__class__|l + (1,)|l + 3|3 + l|(1,) + l|l + x|x + l|l < 3
l < (3,)|l['a']|l.index(4)|l.pop()|l[4]|l.append()|l.append(1, 2)|l.append(a=1)|hash(l)|{l: 2}
setattr(l, 'a', 3)|repr(l) + str(l)|json.dumps(l)|type(copy.copy(l))|type(copy.deepcopy(l))|l()
int(l)|float(l)|abs(l)|-l|l @ x|l * 'a'|'a' * l|l * 2.5|l * x|l - 3|tj.exp(l)|f'{l:>3}'|'a' + l
range(l)|[1, 2][l]|next(l)|hasattr(l, 'read')|hasattr(l, 'tail')|vars(l)|len(l, l)|l.extend(3)
l.sort(3)|l.insert(1)|iter(l, 3)|l ** 2|l or l.foo|operator.iadd(l, x)|operator.iadd(l, 3)
operator.imul(l, x)|operator.imul(l, 'a')|operator.imul(l, 2)|operator.iadd(l, 'ab')"""
NUMBERS = """N.foo|N + 'a'|'a' + N|N[0]|len(N)|N()|type(N)|N.__class__|[*N]|list(N)|{**N}|N < 'a'
N @ x|N & 3|3 ^ N|N << 1|~N|N // 0|N % 0|N / 0|0 // N|N.bit_length()|N.real|math.floor(N)|round(N)
round(N, 1)|divmod(N, 2)|divmod(7, N)|N ** -1|N == 'a'|N < 3.5|pow(N, 3, 5)|complex(N)|N in [3]
N.is_integer()|divmod(N, 'a')|divmod('a', N)|round(N, 'a')|round(N, 1.5)|int('a', N)|x.sum('a')
N & 'a'"""
PLACES = "range(f)|[1, 2][f]|x[f]|x[k:f]|x.reshape(f)|tj.zeros(f)|tj.zeros(k, f)|operator.index(f)"
EXPRESSIONS = [
    *re.split(r"[|\n]", LISTS),
    *(e.replace("N", n) for n in ("k", "f", "size", "item") for e in re.split(r"[|\n]", NUMBERS)),
    *PLACES.split("|"),
]


def module_of(expressions: list[str], folder: Path) -> Any:
    lines = ["import copy, json, math, operator", "import tracejit as tj"]
    for number, expression in enumerate(expressions):
        lines += [f"def f{number}(x, k, f):", "    l = []", "    size = x.shape[0]",
                  "    item = x.sum().item()", f"    return {expression}"]
    path = folder / "written_out.py"
    path.write_text("\n".join(lines) + "\n")
    spec: Any = importlib.util.spec_from_file_location("written_out", path)
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        spec.loader.exec_module(module)
    return module


def seen(f: Any, size: int) -> str:
    try:
        return re.sub("0x[0-9a-f]+", "", repr(f(tj.ones(size), 2, 1.5)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(k, marks=pytest.mark.full) for k in range(1, 24))])
def test_errors_and_types_name_what_plain_python_does(tmp_path: Path, part: int) -> None:
    expressions = EXPRESSIONS[part::24]
    module = module_of(expressions, tmp_path)
    different = []
    for number, expression in enumerate(expressions):
        plain = getattr(module, f"f{number}")
        captured = tj.script(plain, mode="graph")
        found = [(seen(plain, size), seen(captured, size)) for size in (3, 5)]
        different += [(expression, *pair) for pair in found if pair[0] != pair[1]]
    assert not different
