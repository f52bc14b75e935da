"""`python -m tracejit.distributed.launch`: for older scripts, which read `--local-rank`.

In: the options of `run`, and --use-env. Out: the program in several processes. Called on each host
of the job. PyTorch has deprecated it, so it warns as PyTorch does.
"""

from __future__ import annotations

import sys
import warnings

from tracejit.distributed import launch_options, run


def main(arguments: list[str] | None = None) -> int:
    """Start the processes, and wait for them; return 0 if all end well, else 1.

    Raises ValueError for --no-python without --use-env.
    """
    warnings.warn(
        "The module tracejit.distributed.launch is deprecated, as PyTorch's is: use tracejitrun, "
        "and read os.environ['LOCAL_RANK'] in place of the argument --local-rank",
        FutureWarning, stacklevel=2,
    )  # fmt: skip
    reader = launch_options.parser()
    reader.add_argument(
        "--use-env", "--use_env", action="store_true",
        help="tell the local rank by LOCAL_RANK alone, not by the argument --local-rank too",
    )  # fmt: skip
    options = launch_options.parse(arguments, reader)
    if options.no_python and not options.use_env:
        raise ValueError("When using the '--no-python' flag, you must also set the '--use-env' "
                         "flag.")
    return run.launch(options)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
