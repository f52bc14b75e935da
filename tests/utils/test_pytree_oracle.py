"""Trees: what PyTorch's `_pytree` shows and raises."""

import collections
import importlib

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

Pair = collections.namedtuple("Pair", "a b")

EXPRESSIONS = """
P.tree_flatten({'b': 1, 'a': (2, [3, None])})
P.tree_flatten(Pair(1, {'x': 2}))
P.tree_flatten(collections.OrderedDict(b=1, a=2))
P.tree_flatten(collections.defaultdict(list, a=1))
P.tree_flatten(collections.deque([1, 2], maxlen=3))
P.tree_flatten(3)
sorted(kind.__name__ for kind in P.SUPPORTED_NODES if kind in (list, tuple, dict, lib.Size))
P.SUPPORTED_NODES[P._get_node_type({'a': 1})].flatten_fn({'a': 1})
P.SUPPORTED_NODES[P._get_node_type(Pair(1, 2))].unflatten_fn([3, 4], Pair)
P.SUPPORTED_NODES[list].type
P._get_node_type([1]), P._get_node_type(Pair(1, 2)) is collections.namedtuple
P.tree_flatten([])
P.tree_flatten(lib.Size([1, 2]))
P.tree_flatten(slice(1, 2))
P.tree_flatten([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple))
P.tree_structure([1, [2]]) == P.tree_structure([3, [4]])
P.tree_structure((1,)) == P.tree_structure([1])
P.tree_structure({'a': 1, 'b': 2}) == P.tree_structure({'b': 1, 'a': 2})
hash(P.tree_structure([1, 2])) == hash(P.tree_structure([3, 4]))
P.tree_structure([1, [2]]).num_leaves
P.tree_structure([1, [2]]).num_nodes
P.tree_structure([1, [2]]).num_children
P.tree_structure([1]).type
P.tree_structure([1]).context
P.tree_structure(1).is_leaf()
P.tree_structure([1, [2]]).children()
P.tree_structure([1, [2]]).child(1)
P.tree_structure({'z': 1, 'b': [1, {'q': 2, 'r': 3}]})
P.tree_structure([1, 2]).unflatten([3, 4])
P.tree_structure([1, 2]).flatten_up_to([[5], 6])
P.tree_unflatten([1], P.tree_structure([1, 2]))
P.tree_unflatten([1, 2], P.tree_structure({'a': 1, 'b': 2}))
P.tree_unflatten([1, 2], P.tree_structure(Pair(3, 4)))
P.tree_unflatten([1, 2], P.tree_structure(collections.deque([3, 4], maxlen=7)))
P.tree_unflatten([1], P.tree_structure(collections.defaultdict(list, a=1)))
P.tree_unflatten(3, P.tree_structure([1]))
P.tree_unflatten([1], [1])
P.tree_unflatten(iter([1, 2]), P.tree_structure((1, 2)))
P.tree_map(lambda x: x + 1, {'a': [1, 2]})
P.tree_map(lambda x, y: x + y, [1, 2], [3, 4])
P.tree_map(lambda x, y: x + y, [1, 2], [3])
P.tree_map(lambda x, y: (x, y), [1, 2], [[3], 4])
P.tree_map(lambda x, y: (x, y), {'a': 1, 'b': 2}, {'b': 3, 'a': 4})
P.tree_map(lambda x, y: (x, y), {'a': 1}, {'b': 3})
P.tree_map(lambda x, y: (x, y), {'a': 1}, {})
P.tree_map(lambda x, y: (x, y), {'a': 1}, [3])
P.tree_map(lambda x, y: (x, y), [1], (3,))
P.tree_map(lambda x, y: (x, y), collections.OrderedDict(a=1), {'a': 2})
P.tree_map(lambda x: 0, [(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple))
P.tree_map_only(int, lambda x: -x, [1, 2., 'a', True])
P.tree_map_only((int, str), lambda x: 0, [1, 2., 'a'])
P.tree_map_only(int | str, lambda x: 0, [1, 2., 'a'])
P.tree_map_only(lambda x: x == 2, lambda x: 0, [1, 2., 'a'])
P.tree_map_only(3, lambda x: 0, [1])
P.tree_map_(lambda x: None, [1, 2])
P.tree_map_only_(int, lambda x: None, [1, 2.])
P.tree_leaves({'a': [1, (2,)]})
list(P.tree_iter([1, [2]]))
P.tree_all(bool, [1, [0]])
P.tree_any(bool, [1, [0]])
P.tree_all_only(int, bool, [1, 0.0]), P.tree_any_only((int, str), bool, [0, 1.0, ""])
P.key_get({"a": [T(1, [2])]}, P.tree_flatten_with_path({"a": [T(1, [2])]})[0][1][0])
P.tree_structure(T(1, 2)) == P.TreeSpec(collections.namedtuple, T, [P.tree_structure(0)] * 2)
P.arg_tree_leaves(1, [2], a=3)
P.tree_is_leaf(3)
P.tree_is_leaf([])
P.tree_flatten_with_path({'a': [1, Pair(2, 3)]})
P.tree_leaves_with_path([1])
P.keystr(P.tree_flatten_with_path({'a': [1, Pair(2, 3)]})[0][2][0])
P.tree_map_with_path(lambda p, x: (P.keystr(p), x), {'a': [1, 2]})
P.tree_flatten([Box(1)])
P.tree_map(lambda x: x + 1, Box(1)).content
P.tree_map(lambda x, y: 0, Box(1), Box(2, 'other'))
P.tree_flatten_with_path([Box(1)])
P.register_pytree_node(Box, None, None)
P.register_pytree_node(list, None, None)
""".strip().splitlines()


class Box:
    def __init__(self, content, label="label"):
        self.content, self.label = content, label


def outcome(expression, library):
    trees = importlib.import_module(f"{library}.utils._pytree")
    try:
        trees.register_pytree_node(Box, lambda box: ([box.content], box.label),
                                   lambda children, label: Box(*children, label))
    except ValueError:
        assert Box in (getattr(trees, "_kinds", None) or trees.SUPPORTED_NODES)
    names = {"P": trees, "lib": importlib.import_module(library), "Box": Box}
    try:
        return repr(eval(expression, {**globals(), **names})).replace(library, "lib")
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression):
    assert outcome(expression, "tracejit") == outcome(expression, "torch")


def test_a_captured_function_maps_over_trees():
    import tracejit
    from tracejit.utils._pytree import tree_map

    weights = {"a": tracejit.ones(2), "b": [tracejit.zeros(1)]}

    @tracejit.script
    def double(x):
        return tree_map(lambda w: w * x, weights)

    for k in range(3):
        assert double(tracejit.tensor(float(k)))["a"].tolist() == [k, k]
    weights["b"].append(tracejit.ones(1))
    assert len(double(tracejit.tensor(1.0))["b"]) == 2
    weights["a"] = tracejit.ones(3)
    assert double(tracejit.tensor(1.0))["a"].shape == (3,)
