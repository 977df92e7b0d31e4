"""Looking at and removing a folder whose contents a hostile program chose: deep, wide, unreadable, or all three."""

import contextlib
import itertools
import os
import stat


def fits(folder, max_bytes, max_entries):
    """Whether the files in and under `folder` are within both ceilings. What can't be counted doesn't fit."""
    size, entries, waiting = 0, 0, [folder]
    while waiting:
        try:
            found = _entries(waiting.pop())
        except FileNotFoundError:  # removed since it was listed
            continue
        except OSError:  # made unreadable, or deeper than a path can be long
            return False
        entries += len(found)
        size += sum(status.st_blocks * 512 for _, status in found)
        if size > max_bytes or entries > max_entries:
            return False
        waiting += [path for path, status in found if stat.S_ISDIR(status.st_mode)]
    return True


def remove(folder):
    """Remove `folder` and what it holds, following no link.

    A tree may be deeper than a path can be long, so it is flattened: what a folder holds moves up, then the folder goes.
    Its new name is one that nobody can have given before.
    """
    before, fresh = None, os.urandom(8).hex()
    places = (os.path.join(folder, f"{fresh}-{number}") for number in itertools.count())
    while (folders := _unlink_files(folder)) and folders != before:
        before = folders
        for path in folders:
            _empty_into(places, path)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _empty_into(places, path):
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for inner, _ in _entries(path):
            os.rename(inner, next(places))
        os.rmdir(path)


def _unlink_files(folder):
    """Unlink the files in `folder`; its folders, which remain."""
    try:
        found = _entries(folder)
    except OSError:
        return []
    folders = [path for path, status in found if stat.S_ISDIR(status.st_mode)]
    for path in {path for path, _ in found}.difference(folders):
        with contextlib.suppress(OSError):
            os.unlink(path)
    return folders


def _entries(folder):
    """(path, status) of everything directly in `folder` that is not gone again."""
    with os.scandir(folder) as found:
        return [(entry.path, status) for entry in found if (status := _status(entry))]


def _status(entry):
    with contextlib.suppress(FileNotFoundError):
        return entry.stat(follow_symlinks=False)
    return None
