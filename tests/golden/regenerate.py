"""Writes every case's response anew: `python -m tests.golden.regenerate`."""

from __future__ import annotations

from dev import arguments
from tests.golden import cases


def main() -> None:
    arguments.none("tests.golden.regenerate", __doc__)
    for case in cases.every():
        (case / cases.RESPONSE).write_text(cases.response(case))
        print(case.name)


if __name__ == "__main__":
    main()
