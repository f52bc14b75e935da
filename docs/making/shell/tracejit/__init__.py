"""Empty package that griffe reads in place of the real one: `live_names.py` puts all names in."""
