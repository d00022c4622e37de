"""What may be changed in a piece of code so that it means something else.

Finding the places by the syntax tree and changing one of them in the text.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

COMPARED: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
COUNTED: Final[dict[type[ast.operator], str]] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change: a stretch of a text and what takes its place.

    Attributes:
        line: Where it begins, counted from one.
        start: In characters from the text's beginning.
        end: Likewise, after its last one.
        was: What stands there.
        now: What takes its place.
    """

    line: int
    start: int
    end: int
    was: str
    now: str

    def __str__(self) -> str:
        was, now = (" ".join(text.split()) for text in (self.was, self.now))
        return f"`{was}` -> `{now}`"


def mutate(source: str, mutation: Mutation) -> str:
    """Return a text with one change."""
    return source[: mutation.start] + mutation.now + source[mutation.end :]


def mutations(source: str) -> list[Mutation]:
    """Return every change of a text, in its order; `is_program` tells whether one leaves it one."""
    lines = source.splitlines(keepends=True)
    starts = list(accumulate((len(line) for line in lines), initial=0))
    found = set()
    for node in _nodes(ast.parse(source)):
        for at, now in _changes(node, source):
            start, end = _place(lines, starts, at)
            was = source[start:end]
            if was != now:
                found.add(Mutation(line=at.lineno, start=start, end=end, was=was, now=now))
    return sorted(found, key=lambda each: (each.start, each.end, each.now))


def is_program(source: str) -> bool:
    """Tell whether a text can be read as a program."""
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


def is_in_function(source: str, line: int) -> bool:
    """Tell whether a line runs when something is called, and not at import."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        body.lineno <= line <= (node.end_lineno or line)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, functions)
        for body in [node.body[0] if isinstance(node.body, list) else node.body]
    )


def imported(source: str) -> set[str]:
    """Name the modules that a text may import: what it names, and what it names of a package."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Return all nodes but those within a formatted text, whose places older Pythons misstate."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _nodes(child)


Placed = ast.expr | ast.stmt


def _changes(node: ast.AST, source: str) -> Iterator[tuple[Placed, str]]:
    """Return what may take a node's place, with the node that is replaced."""
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp():
            yield from ((node, now) for now in _operations(node, source))
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.If(test=test) | ast.IfExp(test=test):
            yield test, f"(not ({_text(test, source)}))"
        case ast.Expr(value=ast.Call() | ast.Await()):
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield node, "return None"
        case ast.Continue():
            yield node, "break"
        case _:
            return


def _operations(node: ast.expr, source: str) -> Iterator[str]:
    """Return what an operation may become."""
    match node:
        case ast.Compare(left=left, ops=[compared], comparators=[right]):
            if (other := COMPARED.get(type(compared))) is not None:
                yield f"({_text(left, source)} {other} {_text(right, source)})"
        case ast.BoolOp(op=operator, values=values):
            own, other = (" and ", " or ") if isinstance(operator, ast.And) else (" or ", " and ")
            parts = [f"({_text(value, source)})" for value in values]
            yield f"({other.join(parts)})"
            for number in range(len(parts)):
                yield f"({own.join(parts[:number] + parts[number + 1 :])})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"({_text(operand, source)})"
        case ast.BinOp(op=counted, left=left, right=right):
            if (other := COUNTED.get(type(counted))) is not None:
                yield f"({_text(left, source)} {other} {_text(right, source)})"
        case _:
            return


def _text(node: ast.expr, source: str) -> str:
    return ast.get_source_segment(source, node) or ""


def _place(lines: list[str], starts: list[int], node: Placed) -> tuple[int, int]:
    """Return where a node stands; columns of a syntax tree count bytes."""

    def characters(line: int, column: int) -> int:
        text = lines[line - 1].encode()[:column].decode()
        return starts[line - 1] + len(text)

    assert node.end_lineno is not None  # noqa: S101 - for the type checker
    assert node.end_col_offset is not None  # noqa: S101
    return (
        characters(node.lineno, node.col_offset),
        characters(node.end_lineno, node.end_col_offset),
    )
