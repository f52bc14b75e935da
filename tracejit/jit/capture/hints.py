"""Cures of graph breaks: what to write instead, for each kind of reason.

In: the reason of a break, or of the refusal of a branch or a loop. Out: a hint, or "" where there
is no cure. Called by `breaks.py` where the place that breaks gives no hint of its own.

A row has a hint and the reasons that it cures: parts of their texts, with `*` for any text. The
first row that fits counts. `tests/errors/test_hints.py` applies each hint to a program.
"""

from __future__ import annotations

# Two hints are also given by the places that know more.
DEFINED = "define it with `def` in a file and import it, or use `tracejit.where`"
OUTSIDE = "do it outside the captured function"

CURES: tuple[tuple[str, list[str]], ...] = (
    # -- values that Python needs ------------------------------------------------------------------
    ("keep `n` a tensor and loop `while k < n`, which becomes a loop of the graph",
     "a bound of range()".split("|")),
    ("index instead: `x[(tracejit.arange(len(x)) - n) % len(x)]`",
     "needed at once by roll()".split("|")),
    ("compute, compare and index with the tensor itself, without item(), float() or int()",
     "the function calls item()".split("|")),
    ("choose with `tracejit.where`; `tracejit.script` also sees `if x > 0:` without bool()",
     "Python needs to know if a tensor is true".split("|")),
    ("compute with tensors, and convert the result outside the captured function",
     ("the function calls tolist()|the function calls numpy()|NumPy makes an array|"
      "the function pickles a tensor|the function exports a tensor|the function prints a tensor"
      ).split("|")),
    ("copy with `x.clone()`", "copies a tensor by deepcopy".split("|")),
    # -- memory that values share ------------------------------------------------------------------
    ("give it memory of its own: add `.clone()`",
     ("is a view of an outer tensor in one case only|the returned value is a view|"
      "may be a view of an outer tensor|may be an outer tensor|is one of several outer tensors|"
      "is `.data` of a tensor|may be `.data` of a tensor|is from `.data`|"
      "shares memory with an outer tensor|shares memory with a variable|"
      "keeps a tensor from before the loop|"
      "is a view or another variable's tensor|with different `_version`|"
      "may share memory with another tensor|may be a tensor that the loop writes|"
      "is a variable in one case only|under no_grad(), a result may be an outer tensor|"
      "may be a part or a view of another tensor|share memory|it appends a tensor to two lists|"
      "which tensor a variable is|which tensor the function writes|which tensor it is|"
      "which tensor it appends|if two variables are one tensor|appends one from before the loop|"
      "it writes the same memory through two tensors|that it also reads through another tensor|"
      "its variables exchange tensors").split("|")),
    ("give the function tensors that share no memory: `.clone()` one of them before the call",
     "overlaps|overlapping".split("|")),
    ("call `.contiguous()` on it in both cases",
     ("different strides|that is not contiguous|strides that a tensor's value decides"
      ).split("|")),
    # -- what branches and loops give --------------------------------------------------------------
    ("keep one shape: pad it, or mask the elements that do not count",
     "different shapes in the two cases|changes its shape".split("|")),
    ("build a second one for the other place, of `x.clone()` for each tensor",
     "it gives one list or dict in two places".split("|")),
    ("let it require grad in all cases, for instance by adding `0 * w`, or detach it",
     "requires grad only|requires grad in one case only".split("|")),
    ("choose with `tracejit.where(test, a, b)`, so that the gradient reaches both",
     ("a gradient in one branch only|a gradient only after several iterations|"
      "frees the history of a result|second derivative through a branch|"
      "only if a tensor's value says so").split("|")),
    ("call backward() inside the captured function",
     "the result's backward gives a sparse gradient".split("|")),
    ("call it with `sparse=False`", "its backward gives a sparse gradient".split("|")),
    ("choose a value inside the `with` or `try` and return it behind, or write it around the loop",
     ("a `continue` leaves a `with`|only one branch returns a value|only one branch leaves the loop"
      ).split("|")),
    ("raise before the write, or return a flag and raise outside the captured function",
     "before it raises an exception|both branches raise an exception".split("|")),
    ("give the exception a text or a number that no tensor decides",
     "an argument of * is a ".split("|")),
    ("give it one dtype, class, length and keys in all cases; let the branch compute with it, "
     "instead of choosing a text or an object",
     ("in one case and|in one case only|changes from|is another list in each case|"
      "has other keys").split("|")),
    # -- what branches and loops do ----------------------------------------------------------------
    ("draw before the branch or loop, and use the numbers in it",
     "it draws random numbers".split("|")),
    ("compute the value in the branch, and store or append it behind the branch",
     ("it appends to an outer list|it changes a * made outside it|it assigns an item|"
      "it deletes an item|it sets the |it deletes the attribute|it changes an outer object|"
      "it changes the gradient of an outer tensor").split("|")),
    (DEFINED, "whose source tracejit cannot rewrite".split("|")),
    ("do it before or behind the branch or loop",
     ("it may add a missing key|it consumes a |it calls |it imports a module|"
      "which changes objects|which tracejit did not rewrite|it runs the first step of an optimizer|"
      "it changes requires_grad|it runs backward() through history").split("|")),
    ("give tensors, numbers, tuples, lists or dicts, and make the object of them behind the branch",
     "it makes a ".split("|")),
    ("use `with tracejit.no_grad():`", "it leaves grad mode changed".split("|")),
    ("compute a new tensor (`y = y + 1`) instead of writing in place",
     ("it writes an outer tensor while|it writes a tensor that came from `.data`|"
      "whose old value an outer gradient needs|the previous one needs|"
      "in place and then assigns it|modified by an inplace operation|"
      "it writes a tensor while it uses a part|it writes a tensor that it appends"
      ).split("|")),
    ("write the recursion as a `while` loop", "by recursion|recurses too deep".split("|")),
    # -- loops -------------------------------------------------------------------------------------
    ("make it a tensor before the loop: `n = tracejit.tensor(n)`",
     ("changes in each iteration|is too large|in too many ways").split("|")),
    ("give it a value before the loop, of the same shape and dtype",
     "has a value only after the first iteration".split("|")),
    ("append the row to a list, and `tracejit.stack` the list behind the loop",
     ("it writes a slice of a tensor|it reads a tensor whose rows it writes|"
      "an iteration writes a tensor twice|it writes a tensor at an index|"
      "it writes a row with too many dimensions|it fills a row").split("|")),
    ("take the row first and index it then: `x[k][0]`, with `k` in the range of `x`",
     ("it indexes a tensor|it writes a tensor out of range").split("|")),
    ("append one tensor in each iteration to a list made just before the loop, and do not read the "
     "list in the loop",
     ("an iteration appends to a list twice|it appends under a condition|"
      "it appends to a list made outside|it reads a list that|appends to a list|"
      "different leaves").split("|")),
    ("test in the `while`, instead of by `break` or `return` in the body",
     "the body leaves the loop|its body may leave the loop".split("|")),
    ("use the same tensors in every iteration: choose with `tracejit.where`",
     "give gradients to different tensors".split("|")),
    ("make a plain tensor of it: `x.as_subclass(tracejit.Tensor)`",
     ("whose class has a `__torch_function__`|a tensor of a subclass|"
      "the function runs the __torch_function__|has attributes of its own|"
      "a tensor with attributes of its own").split("|")),
    # -- gradients ---------------------------------------------------------------------------------
    ("take this gradient with `tracejit.autograd.grad`",
     "a result retains its gradient|calls retain_grad()".split("|")),
    ("make the leaf outside, and give it to the function",
     "a leaf that the function made".split("|")),
    ("return a new tensor from backward: `grad * 2`, not `grad.mul_(2)`",
     "writes to the gradient that it receives".split("|")),
    ("call backward() inside the captured function",
     "the result's backward calls".split("|")),
    ("let backward() only compute, and keep the log outside the captured function",
     "the result's backward runs".split("|")),
    ("call the function under `tracejit.no_grad()`, or return `y.detach()`",
     "the result's backward would fail|its backward would fail".split("|")),
    ("return the tensor, and read this outside the captured function",
     "returns or stores a tracejit.core.".split("|")),
    # -- what is read and changed ------------------------------------------------------------------
    ("return tensors, numbers, texts, tuples, lists and dicts, and make other objects of them "
     "outside",
     "the function returns or stores a ".split("|")),
    ("hold the tensor or number in an argument, a global variable, an attribute or a closure",
     ("which tracejit cannot find|that tracejit cannot find|tracejit cannot find the number|"
      "tracejit cannot see|tracejit cannot find the function").split("|")),
    ("give the function a tensor instead of it, or a list or number that was read from it",
     "and tracejit cannot see its changes|the function reads this".split("|")),
    ("exchange positions before the captured function, and give it the result",
     "and these come from other processes".split("|")),
    ("give the function the object itself", "of a weak proxy is gone".split("|")),
    ("decide by a Python number that is counted beside the tensor",
     "whose values decided what Python did".split("|")),
    ("call the function without its cache, or before, and give it the result",
     "caches results".split("|")),
    ("use a dict with these keys instead of the set", "the function changes the set".split("|")),
    ("test the values before the call; no exception may be part of a graph",
     "the function raises an exception|fails for these values|it fails for the values".split("|")),
    (OUTSIDE,
     ("the function calls |the function reads |the function sets |the function changes |"
      "the function deletes |the function adds |the function asks how much memory|"
      "the function queues|the function counts|the function computes with tensors of the meta|"
      "a ModuleTracker follows|a branch or a loop calls vmap|new code reads a number").split("|")),
)


def hint_for(reason: str) -> str:
    """Return what cures a break for this reason; "" where nothing does.

    >>> hint_for("the function copies a tensor by deepcopy")
    'copy with `x.clone()`'
    >>> hint_for("no such reason")
    ''
    """
    for hint, parts in CURES:
        if any(_fits(part, reason) for part in parts):
            return hint
    return ""


def _fits(part: str, reason: str) -> bool:
    """Return True if the pieces between the stars of `part` stand in a text, one after another."""
    at = 0
    for piece in part.split("*"):
        at = reason.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    return True
