"""Run one package's program and write what its calls gave.

In: the program's name, `plain` or `captured`, and a path. Out: a JSON file of results, or of the
error. Called by table.py, with PyTorch or, under `python -m tracejit run`, with tracejit.
"""

import importlib
import json
import sys
import traceback
import warnings
from pathlib import Path

CALLS = 5
warnings.simplefilter("ignore")
sys.path.insert(0, str(Path(__file__).parent))


def shown(value):
    """Return the result as lists and numbers."""
    import torch

    if isinstance(value, torch.Tensor):
        value = value.detach()
        if value.is_complex():
            value = torch.view_as_real(value)
        return {"dtype": str(value.dtype).split(".")[-1], "values": value.tolist()}
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return {str(key): shown(item) for key, item in value.items()}
    return value if isinstance(value, (int, float, bool, str)) or value is None else str(value)


def run(name, captured):
    """Call each function of the program CALLS times; return results and what a report says."""
    import torch

    torch.manual_seed(0)
    program = importlib.import_module(f"programs.{name}")
    found = []
    for title, function, arguments in program.functions():
        called = torch.script(function) if captured else function
        results = [shown(called(*arguments)) for _ in range(CALLS)]
        entry = {"title": title, "results": results}
        if captured:
            report = called.report()
            entry["hits"] = report.cache_hits
            entry["breaks"] = [" ".join(str(line).split())[:300] for line in report.breaks]
        found.append(entry)
    return found


def main():
    name, way, path = sys.argv[1:]
    try:
        answer = {"functions": run(name, way == "captured")}
    except BaseException as error:
        answer = {
            "error": f"{type(error).__name__}: {str(error)[:400]}",
            "trace": traceback.format_exc()[-4000:],
        }
    Path(path).write_text(json.dumps(answer))


main()
