"""Faults in what surrounds a program: recipes, what is watched, segments, digests, sizes, memory.

Rows for `tests/mutants.py`, as in `tests/mutant_rows.py`.
"""

from __future__ import annotations

from tests.mutant_rows import Mutant


def _programs(words: str) -> tuple[str, ...]:
    return ("tests/capture/test_programs.py", "-k", f"scripted_program and ({words})")


_EFFECTS = _programs("list or dict or attribute or container or kept or global or deque")
_VIEWS = _programs("views or view_of or holds or base or data")
_DIGESTS = ("tests/ir/test_digest.py",)

RECIPES = [
    Mutant(
        "recipes",
        "views of results have a history of their own",
        "tracejit/jit/runtime/outputs.py",
        "                line.shared = _is_shared(line)\n",
        "",
        _VIEWS,
    ),
    Mutant(
        "recipes",
        "what results nobody holds are views of is no output",
        "tracejit/jit/runtime/outputs.py",
        "        self.results += hidden.values()\n",
        "",
        _VIEWS,
    ),
    Mutant(
        "recipes",
        "views made by a replay count as made in no_grad mode",
        "tracejit/jit/runtime/outputs.py",
        "                    mark(tensor, made.origin)\n",
        "                    pass\n",
        _VIEWS,
    ),
    Mutant(
        "recipes",
        "views keep the history of before what they are views of had one",
        "tracejit/jit/runtime/entry.py",
        "            follow(tensors[k], steps)\n",
        "            pass\n",
        _VIEWS,
    ),
    Mutant(
        "recipes",
        "writes through data count as the tensor's own",
        "tracejit/jit/runtime/build.py",
        "        found.counted = self._counted(tensor)\n",
        "",
        _VIEWS,
    ),
    Mutant(
        "recipes",
        "a number put in the place of another counts as unchanged",
        "tracejit/jit/capture/epilogue.py",
        "if number is not None and (now is number or now is number.original):",
        "if number is not None:",
        _EFFECTS,
    ),
    Mutant(
        "recipes",
        "a list that has grown or shrunk counts as unchanged",
        "tracejit/jit/capture/epilogue.py",
        "    if length(now) != source.length:\n        return True\n",
        "",
        _EFFECTS,
    ),
    Mutant(
        "recipes",
        "keys that a call removes from a dict come back",
        "tracejit/jit/capture/contents.py",
        "    if len(entries) < len(keys) or not all(map(_same_key, keys, entries)):",
        "    if False:",
        _programs("dict"),
    ),
    Mutant(
        "recipes",
        "a list that is refilled is another list",
        "tracejit/jit/capture/epilogue.py",
        "make = list if cls is StackedList else cls",
        "make = cls",
        _programs("list"),
    ),
    Mutant(
        "recipes",
        "a tensor that is returned twice becomes two",
        "tracejit/jit/capture/epilogue.py",
        "number = self.positions.setdefault(id(tensor), len(self.tensors))",
        "number = len(self.tensors)",
        _programs("twice or identity or alias or same"),
    ),
    Mutant(
        "recipes",
        "an int in place of a bool that equals it counts as unchanged",
        "tracejit/jit/capture/access_path.py",
        "    if one is other or type(one) is not type(other) or is_a(one, Tensor):\n",
        "    if one is other or is_a(one, Tensor):\n",
        _programs("equal"),
    ),
]

WATCHING = [
    Mutant(
        "watch",
        "every C function is taken for pure",
        "tracejit/jit/capture/pure.py",
        "return module in _PURE_MODULES",
        "return True",
        _programs("unknown or foreign or clock or numpy or file or effects or random"),
    ),
    Mutant(
        "watch",
        "globals that are stored and never read are not seen",
        "tracejit/jit/capture/watcher.py",
        '_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL")',
        '_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "DELETE_GLOBAL")',
        _programs("global or effects or counter"),
    ),
    Mutant(
        "watch",
        "attribute names that are computed are not widened",
        "tracejit/jit/capture/watcher.py",
        "dynamic = by_position or bool((attributes | global_names) & _DYNAMIC)",
        "dynamic = by_position",
        _programs("getattr or vars or attribute or dynamic"),
    ),
]

SEGMENTS = [
    Mutant(
        "settle",
        "a tensor made in a segment forgets how often it was written",
        "tracejit/jit/capture/materialise.py",
        "                root._storage.version = memory.version\n",
        "                pass\n",
        _programs("versions_after"),
    ),
    Mutant(
        "settle",
        "the caller's memory forgets how often a segment wrote it",
        "tracejit/jit/capture/flush.py",
        "            memory.input_tensor._storage.version = memory.version\n",
        "            pass\n",
        _programs("version"),
    ),
    Mutant(
        "settle",
        "generators do not advance at the end of a segment",
        "tracejit/jit/capture/flush.py",
        "            draws.generator.take(hint(draws.count))\n",
        "            pass\n",
        _programs("random or draws or dropout"),
    ),
    Mutant(
        "digest",
        "attributes do not count",
        "tracejit/jit/ir/digest.py",
        "attributes = [(name, self.static(x)) for name, x in sorted(node.attributes.items())]",
        "attributes = [name for name, x in sorted(node.attributes.items())]",
        _DIGESTS,
    ),
    Mutant(
        "digest",
        "what is written does not count",
        "tracejit/jit/ir/digest.py",
        "[(number[target], number[v]) for target, v in graph.writes], sorted(sources))",
        "[], sorted(sources))",
        _DIGESTS,
    ),
    Mutant(
        "digest",
        "where a symbol is bound does not count",
        "tracejit/jit/ir/digest.py",
        "sources = [(self.symbols[n], s) for n, s in graph.symbol_sources.items()]",
        "sources = [self.symbols[n] for n, s in graph.symbol_sources.items()]",
        _DIGESTS,
    ),
    Mutant(
        "bindings",
        "strides of inputs do not choose a binding",
        "tracejit/jit/runtime/compiled_graph.py",
        "(x._shape, x._strides) if isinstance(x, Tensor) else x if k in self.numbers else None",
        "x._shape if isinstance(x, Tensor) else x if k in self.numbers else None",
        ("tests/capture/test_replay.py", "-k", "strides"),
    ),
    Mutant(
        "sizes",
        "a comparison of sizes is guarded the other way round",
        "tracejit/jit/ir/sizes.py",
        "held = relation if answer else _NEGATED[relation]",
        "held = relation",
        _programs("size or shape or length"),
    ),
    Mutant(
        "partition",
        "nobody knows of which inputs a backward computes again what was kept",
        "tracejit/jit/autodiff/partition.py",
        "            if again and node is None:\n",
        "            if again is None:\n",
        ("tests/capture/test_unseen_writes.py",),
    ),
    Mutant(
        "partition",
        "gradients that nothing was computed of arrive with whatever does",
        "tracejit/jit/autodiff/tangents.py",
        "return [g if source is None else self._linked(source, g) for g in results]",
        "return list(results)",
        _programs("functions_of_which_some_results_are_used"),
    ),
    Mutant(
        "partition",
        "what a backward computes again from is not kept before it is written",
        "tracejit/jit/runtime/later_backward.py",
        "if x._storage is storage and k not in self.old:",
        "if False:",
        ("tests/capture/test_unseen_writes.py",),
    ),
    Mutant(
        "partition",
        "what a backward computes again from is read in a result's memory",
        "tracejit/jit/runtime/backward_maker.py",
        "if value in others",
        "if value in primal",
        ("tests/capture/test_errors_of_kept.py",),
    ),
    Mutant(
        "partition",
        "a write to a result that one way of a branch keeps is not noticed",
        "tracejit/jit/runtime/backward_maker.py",
        "return self.saved.get(value, -1)",
        "return -1",
        ("tests/capture/test_errors_of_kept.py",),
    ),
    Mutant(
        "partition",
        "a loop's error names what the caller has, not what its body keeps",
        "tracejit/jit/autodiff/outer_saves.py",
        "return outer if self.tensor is inner else None",
        "return outer",
        ("tests/capture/test_errors_of_kept.py",),
    ),
    Mutant(
        "memory",
        "a block that a view still looks at is used again",
        "tracejit/core/memory/allocator.py",
        "if references == _ALONE:",
        "if True:",
        ("tests/memory/test_storage.py",),
    ),
]

LATER = [
    Mutant(
        "later",
        "hooks of results are recorded whatever they do",
        "tracejit/jit/autodiff/pure_backward.py",
        "return all(map(_is_steady, read)) and _are_values(local[name] for name in given)",
        "return True",
        _programs("later_backward"),
    ),
    Mutant(
        "later",
        "C functions that hooks call may have effects",
        "tracejit/jit/autodiff/pure_backward.py",
        'if event == "c_call" and not is_harmless(argument):',
        "if False:",
        _programs("later_backward"),
    ),
    Mutant(
        "later",
        "gradients are retained when a backward is recorded",
        "tracejit/jit/autodiff/differentiate.py",
        "if retaining(outputs, tracer.first_node):",
        "if False:",
        _programs("later_backward"),
    ),
    Mutant(
        "later",
        "a replay's leaves have no gradient",
        "tracejit/jit/runtime/build.py",
        "        frame.tensors[number]._grad = spec(frame)\n",
        "        spec(frame)\n",
        _programs("gradient_of_their_own"),
    ),
]

ROWS = [*RECIPES, *WATCHING, *SEGMENTS, *LATER]
