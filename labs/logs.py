"""What ranks and launchers wrote: each rank has a folder named by its number, somewhere below the log directory."""

from pathlib import Path

LAST_LINES = 15


def read(file):
    """The text of a log file, empty where there is none."""
    try:
        return Path(file).read_text(errors="replace")
    except FileNotFoundError:
        return ""


def of_rank(log_dir, rank, stream="*"):
    """The log files of a rank; `stream` picks stdout or stderr."""
    return sorted(Path(log_dir).glob(f"**/{rank}/std{stream.removeprefix('std')}.log"))


def tail(*files):
    """The last lines of log files, indented."""
    lines = [line for file in files for line in read(file).splitlines()]
    return "\n".join(f"    {line}" for line in lines[-LAST_LINES:]) or "    (it is empty)"
