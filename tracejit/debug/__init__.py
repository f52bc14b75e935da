"""Reports of captured functions, and comparison of compiled against eager."""
