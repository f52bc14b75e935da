"""Names that are tracejit's own: programs for PyTorch do not have them.

Out: `ADDITIONS`, one list for readers; `docs/additions.md` shows it. Every other name that
`dir(tracejit)` lists is PyTorch's. Called by: tests and the page's maker; nothing else reads it.
"""

ADDITIONS = {
    "script": "compiles a function, a method or a module; its `if`, `for` and `while` on tensors "
              "become parts of one program",
    "trace": "compiles a function by running it, without its source; of a matrix it returns the "
             "sum of the diagonal, as PyTorch does",
    "CompiledFunction": "is the class of what `script` and `trace` return",
    "CompiledFunction.report": "tells what was compiled, why, what broke, and what it costs",
    "CompiledFunction.profile": "times each kernel; the report then names the slowest",
    "CompiledFunction.graph": "returns the captured graph that serves some arguments",
    "CompiledFunction.graphs": "holds the text of the last graph after each pass",
    "no_recompile": "makes a recompilation an error inside a `with` block",
    "RecompileError": "is that error; it names the cause",
    "CaptureError": "is raised under `fullgraph=True` where no single program can be made",
    "compare": "runs each node compiled, interpreted and in float64, and names the first that "
               "differs",
    "config": "holds the flags, which environment variables set too ([flags.md](flags.md))",
    "config.flags": "has one attribute for each flag; an assignment is checked",
    "config.override": "sets flags for the length of a `with` block",
    "config.table": "returns a table of all flags, their values and variables",
    "logs": "writes what the compiler did to stderr, as `config.flags.logs` asks",
    "debug": "has the reports and the comparison behind `report` and `compare`",
    "datasets": "loads small data sets without further packages: digits, MNIST, folders of images",
    "safetensors": "reads and writes tensors in the safetensors format",
    "DeviceUnavailable": "is raised for a device that this machine, or its installation, lacks",
}  # fmt: skip
