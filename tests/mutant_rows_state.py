"""Faults in what a captured function knows of Python: numbers, reads, guards, rewritten code.

Rows for `tests/mutants.py`, as in `tests/mutant_rows.py`.
"""

from __future__ import annotations

from tests.mutant_rows import Mutant

_NUMBERS = ("tests/capture/test_numbers.py", "tests/capture/test_number_arguments.py")
_READS = ("tests/capture/test_host_reads.py",)
_SNAPSHOTS = ("tests/capture/test_snapshots.py",)
_REWRITE = (
    "tests/capture/test_rewrite_told.py",
    "tests/capture/test_rewrite_sources.py",
    "tests/capture/test_rewrite.py",
)
_FAILURES = ("tests/capture/test_failures.py", "tests/capture/test_first_failure.py")
_INTERRUPTS = ("tests/capture/test_interrupts.py",)
_RANDOM = ("tests/ops/test_random.py", "tests/ops/test_sampling.py")
_GUARDS = ("tests/capture/test_guards.py",)


def _programs(words: str) -> tuple[str, ...]:
    return ("tests/capture/test_programs.py", "-k", f"scripted_program and ({words})")


NUMBERS = [
    Mutant(
        "runtime",
        "the answer to a comparison of numbers is not guarded",
        "tracejit/jit/capture/runtime_numbers.py",
        "        self._note(SymGuard(op, (left, right), answer))\n",
        "",
        (_NUMBERS[1], "-k", "answer or truth"),
    ),
    Mutant(
        "runtime",
        "whether an int fits 64 bits is not guarded",
        "tracejit/jit/capture/runtime_numbers.py",
        '        self._note(SymGuard("fits", (number,)))\n',
        "",
        _NUMBERS,
    ),
    Mutant(
        "runtime",
        "equal constants of two types are one",
        "tracejit/jit/capture/runtime_numbers.py",
        "return id(x) if is_call_sym(x) else (type(x), repr(x))",
        "return id(x) if is_call_sym(x) else x",
        _NUMBERS,
    ),
    Mutant(
        "runtime",
        "the type of a power is not guarded",
        "tracejit/jit/capture/runtime_numbers.py",
        '            if op == "pow":\n',
        "            if False:\n",
        _NUMBERS,
    ),
    Mutant(
        "scalars",
        "a reflected divmod divides the other way",
        "tracejit/jit/capture/scalars.py",
        "return _quotient_and_rest(other, self) if",
        "return _quotient_and_rest(self, other) if",
        ("tests/capture/test_survivors_numbers.py",),
    ),
    Mutant(
        "scalars",
        "a reflected operator forgets to exchange its operands",
        "tracejit/jit/capture/scalars.py",
        "return _binary(op, other, self, self) if reflected else _binary(op, self, other, self)",
        "return _binary(op, self, other, self)",
        _NUMBERS,
    ),
    Mutant(
        "places",
        "numbers stay in objects that are elsewhere after the call",
        "tracejit/jit/capture/lift_numbers.py",
        "                _set(source, owner, fresh)\n",
        "                pass\n",
        _programs("owner_that_is_elsewhere"),
    ),
    Mutant(
        "runtime",
        "a size of a segment before is looked up by its name",
        "tracejit/jit/capture/value_checks.py",
        "attributes = at_size(attributes)  # sizes may be of earlier segments",
        "attributes = at_size(attributes, tracer.graph.scope.hints)",
        _programs("sizes_read_before_an_array"),
    ),
    Mutant(
        "guards",
        "a look at a defaultdict makes what is missing",
        "tracejit/jit/capture/guards.py",
        'return f"{parent}.get({self._key(source.key)}, ABSENT)"',
        'return f"{parent}[{self._key(source.key)}]"',
        _programs("parameters_replaced_under"),
    ),
    Mutant(
        "guards",
        "a method of an object of the library is not replaced",
        "tracejit/jit/capture/attributes.py",
        "(not ours or is_a(found, FunctionType))",
        '(not ours or name == "forward")',
        _programs("methods_of_library"),
    ),
    Mutant(
        "places",
        "numbers in objects nobody listed are not swept",
        "tracejit/jit/capture/lift_numbers.py",
        "        if swept:\n            concretize_referrers(numbers)\n",
        "",
        _NUMBERS,
    ),
    Mutant(
        "places",
        "a number that was seen to change stays guarded by value",
        "tracejit/jit/capture/lift_numbers.py",
        "if self._stored(source) or path_of(source) in self.varying:",
        "if self._stored(source):",
        _NUMBERS,
    ),
]

READS = [
    Mutant(
        "reads",
        "item() reads what a later write leaves",
        "tracejit/jit/capture/host_reads.py",
        "        return tracer.run(copy, (tensor,), {})",
        "        return tensor",
        _READS,
    ),
    Mutant(
        "reads",
        "a division by what may be zero is put off",
        "tracejit/jit/capture/host_reads.py",
        "return is_exactly(x, (int, float)) and x != 0",
        "return True",
        _READS,
    ),
    Mutant(
        "reads",
        "an int in a tensor op is taken for a float's width",
        "tracejit/jit/capture/host_reads.py",
        "    if value.type.dtype is not dtype:\n",
        "    if False:\n",
        _READS,
    ),
    Mutant(
        "reads",
        "what constants of sizes decide holds for other sizes",
        "tracejit/jit/capture/fold.py",
        "with_numbers(attributes, concretize)",
        "with_numbers(attributes, lambda x: x.hint if type(x) is SymInt else x)",
        _programs("constants_of_sizes_decide"),
    ),
    Mutant(
        "reads",
        "what sizes decide is no branch of the graph",
        "tracejit/jit/capture/fold.py",
        "of_sizes and _has_sizes(one.node)",
        "of_sizes and False",
        _programs("sizes_in_constants"),
    ),
    Mutant(
        "host",
        "tuples keep pending numbers",
        "tracejit/jit/capture/host_program.py",
        "    if fresh:\n        made",
        "    if False:\n        made",
        ("tests/capture/test_survivors_reads.py",),
    ),
    Mutant(
        "host",
        "a replay prints before it has its values",
        "tracejit/jit/capture/host_program.py",
        "return [self.run, *shown] if self.steps or shown else []",
        "return [*shown, self.run] if self.steps or shown else []",
        _READS,
    ),
    Mutant(
        "host",
        "attributes keep pending numbers",
        "tracejit/jit/capture/host_program.py",
        "        _replace_in(instance_dict(holder), values)\n",
        "        pass\n",
        ("tests/capture/test_survivors_reads.py",),
    ),
    Mutant(
        "append-only",
        "a list that is read is taken for one that only grows",
        "tracejit/jit/capture/append_only.py",
        "return bool(uses) and all(_harmless(use, tuple(keys)) for use in uses)",
        "return bool(uses) and any(_harmless(use, tuple(keys)) for use in uses)",
        (*_READS, "tests/capture/test_replay.py"),
    ),
    Mutant(
        "append-only",
        "a replay's new elements take the place of the list's own",
        "tracejit/jit/capture/append_only.py",
        "target[len(target) :] = more",
        "target[:] = more",
        (*_READS, "tests/capture/test_replay.py"),
    ),
    Mutant(
        "checks",
        "positions are not looked at before an op that may fail",
        "tracejit/jit/capture/value_checks.py",
        'op.kind == "extern" or value.type.dtype.category <= INTEGER',
        'op.kind == "extern"',
        _FAILURES,
    ),
    Mutant(
        "checks",
        "results that no memory can hold are recorded",
        "tracejit/jit/capture/value_checks.py",
        "if math.prod(shape) * itemsize > _LARGE or overflows(shape, itemsize):",
        "if False:",
        (*_FAILURES, "tests/ops/test_overflow.py"),
    ),
]

GUARDS = [
    Mutant(
        "guards",
        "whether an input is contiguous is not checked",
        "tracejit/jit/capture/guards.py",
        'f"({name}._strides is None) is not {contiguous}",',
        'f"False",',
        _programs("transposed or strided or argument or view or slice"),
    ),
    Mutant(
        "guards",
        "hooks of an input are not checked",
        "tracejit/jit/capture/guards.py",
        'else f"{name}._hooks is not None and hooks_of({name}) != ()",',
        'else "False",',
        _programs("hook_added"),
    ),
    Mutant(
        "guards",
        "the code of a function is not checked",
        "tracejit/jit/capture/guards.py",
        'f"or {name}.__code__ is not {self._constant(value.__code__)}",',
        '"or False",',
        (*_GUARDS, "tests/capture/test_snapshots.py"),
    ),
    Mutant(
        "snapshots",
        "arguments that were one tensor are not compared",
        "tracejit/jit/capture/fast_guards.py",
        "if not all(number[id(p)] in coverage.checks for p in pair)}",
        "if False}",
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "modes are not asked",
        "tracejit/jit/capture/fast_guards.py",
        "if not self.lines.asks_only(n, fixed)}",
        "if False}",
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "numbers computed of others are taken to stay as they are",
        "tracejit/jit/capture/fast_guards.py",
        'if name[0] == "n" and fixed.issuperset(used):',
        'if name[0] == "n":',
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "what makes a defaultdict's entries is not compared",
        "tracejit/jit/capture/snapshot.py",
        """            at = words.slot_offset(vars(defaultdict)["default_factory"])
            return {own: [(id(parent) + at, id(value))]}
""",
        "            return {own: []}\n",
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "a dict's version is not compared",
        "tracejit/jit/capture/snapshot.py",
        "return [(at + words.SIZE, dict.__len__(table)), "
        "(at + words.DICT_VERSION, _version(table))]",
        "return [(at + words.SIZE, dict.__len__(table))]",
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "the address of a tensor's memory is not compared",
        "tracejit/jit/capture/snapshot.py",
        "return [*rows, (id(x) + its_storage, at), (at + words.TYPE, id(type(storage))),\n"
        "                (at + its_pointer, id(storage._ptr))]",
        "return rows",
        _SNAPSHOTS,
    ),
    Mutant(
        "snapshots",
        "numbers that an address identifies are not kept alive",
        "tracejit/jit/capture/snapshot.py",
        "            self.pins.append(value)\n",
        "            pass\n",
        _SNAPSHOTS,
    ),
    Mutant(
        "runs",
        "elements of every input are taken to be four bytes",
        "tracejit/jit/runtime/launch.py",
        "x._dtype.itemsize if isinstance(x, Tensor) else number_word(kind)",
        "4 if isinstance(x, Tensor) else number_word(kind)",
        ("tests/capture/test_replay.py", "-k", "slice"),
    ),
    Mutant(
        "runs",
        "Ctrl-C before it is held leaves the end of a recording out",
        "tracejit/jit/runtime/session.py",
        "if not self.closed:  # Ctrl-C came before it could be held",
        "if False:",
        (*_INTERRUPTS, "-k", "numbers_of_the_caller"),
    ),
    Mutant(
        "runs",
        "a watcher that Ctrl-C kept on listens after the call",
        "tracejit/jit/runtime/session.py",
        "if is_watched_now() and sys.getprofile() != self.listened:",
        "if False:",
        (*_INTERRUPTS, "-k", "nobody_watches"),
    ),
    Mutant(
        "runs",
        "a watcher that Ctrl-C took away is not missed",
        "tracejit/jit/capture/watcher.py",
        "if kind is None and sys.getprofile() != self._event:",
        "if False:",
        (*_INTERRUPTS, "-k", "interrupt_took"),
    ),
    Mutant(
        "runs",
        "an interrupted launch is taken to have run",
        "tracejit/jit/runtime/launch.py",
        "(_outputs(names), True) if names[\"calls\"].ran() else None",
        "(_outputs(names), True)",
        (*_INTERRUPTS, "-k", "did_not_run"),
    ),
    Mutant(
        "runs",
        "the native start does not advance versions",
        "tracejit/jit/runtime/native_start.py",
        "after = call_function(value, before) + words[pairs + 2 * k + 1]",
        "after = call_function(value, before)",
        ("tests/runtime/test_native_start.py",),
    ),
    Mutant(
        "runs",
        "a result's memory serves again while an array looks at it",
        "tracejit/jit/runtime/native_start.py",
        "pointer_at({candidate}[{slot[\"block\"]}])[0] == 1",
        "pointer_at({candidate}[{slot[\"block\"]}])[0] >= 1",
        ("tests/runtime/test_native_start.py",),
    ),
    Mutant(
        "runs",
        "what an interrupt left undone stays so",
        "tracejit/jit/runtime/entry.py",
        "        for effect in self.others[done:]:\n            effect(frame)\n",
        "        pass\n",
        (*_INTERRUPTS, "-k", "replay_is_whole and fast"),
    ),
    Mutant(
        "random",
        "all draws of a program are the first",
        "tracejit/core/ops/random_record.py",
        "return key & MASK, (drawn + offset) & MASK",
        "return key & MASK, drawn & MASK",
        _programs("random or dropout or draws"),
    ),
    Mutant(
        "random",
        "elements of a row are those of the row before, shifted",
        "tracejit/core/ops/random_record.py",
        "number = number * size + position",
        "number = number + position",
        _RANDOM,
    ),
]

REWRITING = [
    Mutant(
        "rewriting",
        "0.0 and -0.0 in a source are the same",
        "tracejit/jit/capture/source_match.py",
        "return repr(a) == repr(b)  # tells 0.0 from -0.0",
        "return a == b",
        ("tests/capture/test_rewrite_sources.py",),
    ),
    Mutant(
        "rewriting",
        "a chained comparison compares with its first operand again",
        "tracejit/jit/capture/rewrite_expressions.py",
        "operands: list[ast.expr] = [load(right), self.visit(others[0])]",
        "operands: list[ast.expr] = [load(left), self.visit(others[0])]",
        _REWRITE,
    ),
    Mutant(
        "rewriting",
        "what `in` looks through may be consumed",
        "tracejit/jit/capture/control.py",
        "    container = iterated(container)\n",
        "",
        _programs("iterator"),
    ),
    Mutant(
        "rewriting",
        "stores to attributes are not announced",
        "tracejit/jit/capture/rewrite_stores.py",
        "if isinstance(node, ast.Attribute) and not isinstance(context, ast.Load):",
        "if isinstance(node, ast.Attribute) and isinstance(context, ast.Del):",
        _REWRITE,
    ),
    Mutant(
        "rewriting",
        "stores to nonlocal names are not announced",
        "tracejit/jit/capture/rewrite_stores.py",
        '("nonlocal", self.scope.nonlocals))',
        '("nonlocal", set()))',
        _programs("names_of_others"),
    ),
    Mutant(
        "rewriting",
        "a name bound in one side of an `if` counts as bound",
        "tracejit/jit/capture/rewrite_bound.py",
        "return _joined(self.block(node.body, state), self.block(node.orelse, state))",
        "return (self.block(node.orelse, state), self.block(node.body, state))[1]",
        _REWRITE,
    ),
    Mutant(
        "rewriting",
        "what a later iteration reads counts as dead",
        "tracejit/jit/capture/rewrite.py",
        "        if not self.loops:\n",
        "        if True:\n",
        _REWRITE,
    ),
    Mutant(
        "rewriting",
        "what follows a statement that may return is lost in its else part",
        "tracejit/jit/capture/rewrite.py",
        'orelse = self.part("else", node.orelse, after, names, node)',
        'orelse = self.part("else", node.orelse, None, names, node)',
        _REWRITE,
    ),
]

ROWS = [*NUMBERS, *READS, *GUARDS, *REWRITING]
