"""Looking inside: reports, comparison of compiled against eager."""
