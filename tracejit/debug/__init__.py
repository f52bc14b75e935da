"""Reports of captured functions, and comparison of compiled with eager."""
