"""Progress for people: redrawn on a terminal, plain lines elsewhere.

How changing lines are shown.
"""

import sys


class Tree:
    """A few lines that change over time.

    Args:
        live: redraw in place; otherwise a line is printed when it changed.
    """

    def __init__(self, *, live: bool) -> None:
        self._live = live
        self._shown: list[str] = []

    def show(self, lines: list[str]) -> None:
        """Show the lines as they are now. Idempotency: equal lines print nothing."""
        if lines == self._shown:
            return
        if self._live:
            up = f"\x1b[{len(self._shown)}F\x1b[J" if self._shown else ""
            sys.stdout.write(up + "".join(f"  {line}\n" for line in lines))
        else:
            seen = set(self._shown)
            sys.stdout.write("".join(f"  {line}\n" for line in lines if line not in seen))
        sys.stdout.flush()
        self._shown = lines

    def close(self) -> None:
        """End this drawing; the next one starts below it."""
        self._shown = []
