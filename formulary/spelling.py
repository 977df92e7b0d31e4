"""Names near a misspelt one."""

import difflib


def nearest(name, known):
    """`; did you mean …?` for a name that is not among `known`, or nothing when none is near."""
    close = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(close)}?" if close else ""
