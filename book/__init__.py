"""The static site: the chapters as pages that need no kernel and no network. `python -m book.build` makes it."""
