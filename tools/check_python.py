# Says clearly that a Python is too old or too new. Written so that even a very old one can run it.
import sys

if not (3, 11) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        "found Python %d.%d, need 3.11 to 3.13; name another one, like: make study PYTHON=python3.12"  # noqa: UP031
        % sys.version_info[:2]
    )
