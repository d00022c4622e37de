"""Writes every case's response anew: `python -m tests.golden.regenerate`."""

from __future__ import annotations

from tests.golden import cases


def main() -> None:
    for case in cases.every():
        (case / cases.RESPONSE).write_text(cases.response(case))
        print(case.name)


if __name__ == "__main__":
    main()
