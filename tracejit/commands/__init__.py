"""Commands of `python -m tracejit`, a file for each; `parsers` declares them."""
