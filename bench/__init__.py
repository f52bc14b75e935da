"""Programs that measure tracejit beside its peers, in one run: `python -m bench` (`make bench`).

Measurements, never tests: they print a table, and write JSON when asked.
"""
