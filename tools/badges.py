"""Print the Binder and Colab badges of this copy of the book, from its git remote: `python3 tools/badges.py [NOTEBOOK]`."""

import re
import subprocess
import sys

BINDER = "[![Binder](https://mybinder.org/badge_logo.svg)](https://mybinder.org/v2/gh/{repo}/{branch}?urlpath=lab/tree/contents.md)"
COLAB = "[![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/{repo}/blob/{branch}/{path})"
GITHUB = re.compile(r"github\.com[:/]([^/]+/[^/]+?)(?:\.git)?/?$")


def badges(remote, branch, path):
    """The two badges as markdown. Raises ValueError if `remote` is not on GitHub, which both services read from."""
    match = GITHUB.search(remote)
    if not match:
        raise ValueError(
            f"the remote is {remote or 'not set'!r}; both badges need one on github.com, like git@github.com:you/your-copy.git"
        )
    return [badge.format(repo=match[1], branch=branch, path=path) for badge in (BINDER, COLAB)]


def _git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=False).stdout.strip()


def main(argv=None):
    """Print the badges; returns the exit status."""
    path = next(iter(sys.argv[1:] if argv is None else argv), "chapters/01_memory.ipynb")
    try:
        print(*badges(_git("remote", "get-url", "origin"), _git("branch", "--show-current") or "main", path), sep="\n")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
