"""The language of patterns: what is taken, what is not and why, and what a match costs."""

from __future__ import annotations

import time

import pytest

from function.contract import patterns


@pytest.mark.parametrize(
    ("pattern", "value", "matching"),
    [
        ("^[a-z0-9]+(-[a-z0-9]+)*$", "web-1", True),
        ("^[a-z0-9]+(-[a-z0-9]+)*$", "web-1\n", False),
        ("^(small|large)$", "large", True),
        ("^(small|large)$", "larger", False),
        ("^ami-[0-9a-f]{8}([0-9a-f]{9})?$", "ami-0123456789abcdef0", True),
        (r"^([0-9]{1,3}\.){3}[0-9]{1,3}$", "10.0.0.1", True),
        (r"^([0-9]{1,3}\.){3}[0-9]{1,3}$", "10x0x0x1", False),
        ("^[0-9]+$", "٤٢", False),
        ("^$", "", True),
    ],
)
def test_a_value_matches_as_a_whole(pattern: str, value: str, matching: bool) -> None:
    assert patterns.problem(pattern) is None
    assert patterns.matches(pattern, value) is matching


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        ("[a-z]+", "begin with ^"),
        ("^[a-z]+", "end with $"),
        ("^small|large$", "alternatives in a group"),
        ("^(a$", "close each group"),
        ("^a)$", "open each group"),
        ("^*$", "something before each quantifier"),
        ("^a**$", "one quantifier"),
        ("^a+?$", "one quantifier"),
        ("^(?=a)$", "something before"),
        ("^(?i)a$", "something before"),
        (r"^\d$", "literals"),
        (r"^\\$", "literals"),
        ("^a\\$", "literals"),
        ("^a{$", "literals"),
        ("^a$b$", "literals"),
        ("^[a[b]]$", "literals"),
        ("^[[:alpha:]]$", "engines read differently"),
        ("^[a-z&&b]$", "engines read differently"),
        ("^[z-a]$", "RE2"),
        ("^a{3,1}$", "count upwards"),
        ("^é$", "ASCII"),
        (f"^{'a' * 255}$", "at most 256"),
        ("^a{1025}$", "at most 1024"),
        ("^((a{11}){11}){11}$", "at most 1024"),
    ],
)
def test_what_engines_read_differently_or_costs_much_is_no_pattern(pattern: str, word: str) -> None:
    found = patterns.problem(pattern)

    assert found is not None
    assert word in found


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "^(a|aa)*$",
        "^((a{0,31}){0,31})$",
        "^(((a{0,10}){0,10}){0,10})$",
        "^((((a?b?)*c?)*d?)*[a-f]{0,500}){0,2}$",
    ],
)
def test_no_pattern_makes_a_value_expensive(pattern: str) -> None:
    assert patterns.problem(pattern) is None
    started = time.process_time()

    assert not patterns.matches(pattern, "a" * (patterns.MATCHED_MAX - 1) + "!")

    assert time.process_time() - started < 2.0


def test_a_value_beyond_the_bound_is_not_searched() -> None:
    assert patterns.matches("^a*$", "a" * patterns.MATCHED_MAX)
    assert not patterns.matches("^a*$", "a" * (patterns.MATCHED_MAX + 1))
