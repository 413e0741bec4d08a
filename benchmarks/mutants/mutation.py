"""The mutants of a module: its source with one small error each, by operators of Cosmic Ray and a few of our own.

An operator is what Cosmic Ray takes for one: `mutation_positions` tells how often it can change a node of parso's tree,
`mutate` changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

from benchmarks.mutants.mutant import Mutant

Span = tuple[tuple[int, int], tuple[int, int]]  # (line, column) of the start and the end

_BINARY = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Pow_Mul", "Mod_FloorDiv", "BitAnd_BitOr",
           "BitOr_BitAnd", "LShift_RShift", "RShift_LShift")  # fmt: skip
_COMPARISONS = ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt", "Lt_GtE", "LtE_Gt", "Gt_LtE", "GtE_Lt", "Eq_NotEq", "NotEq_Eq",
                "Is_IsNot", "IsNot_Is")  # fmt: skip
_OTHERS = ("ReplaceUnaryOperator_Delete_USub", "ReplaceUnaryOperator_Delete_Not", "AddNot", "ReplaceTrueWithFalse",
           "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceBreakWithContinue",
           "ReplaceContinueWithBreak", "ExceptionReplacer", "NumberReplacer", "ZeroIterationForLoop")  # fmt: skip
_OPPOSITES = {"min": "max", "minimum": "maximum", "floor": "ceil", "any": "all", "amin": "amax", "argmin": "argmax"}
_OPPOSITES |= {there: here for here, there in _OPPOSITES.items()}

# Kinds that are tried alone: what users would meet where it is not noticed.
KINDS = {
    "calls": ("Uncalled",),
    "conditions": ("Unguarded",),
    "ends": tuple(f"ReplaceComparisonOperator_{name}" for name in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")),
}


class Opposite:
    """The least for the largest, down for up, some for all: `min` becomes `max`."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        """One for each name of such a function where it is called."""
        if node.type == "name" and node.value in _OPPOSITES:
            after = node.get_next_leaf()
            if after is not None and after.value == "(" and node.parent.type != "funcdef":
                yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The other function."""
        node.value = _OPPOSITES[node.value]
        return node


class Unguarded:
    """A condition that is never met: `if x` becomes `if False and x`. Who refuses bad input then lets it through."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        """One for each condition of an `if` statement."""
        for _, condition in self._conditions(node):
            yield condition.start_pos, condition.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """With the condition off."""
        keyword, condition = list(self._conditions(node))[index]
        keyword.value += " False and ("
        last = condition.get_last_leaf()
        last.value += ")"
        return node

    def _conditions(self, node: Any) -> Iterator[tuple[Any, Any]]:
        if node.type == "if_stmt":
            for keyword, condition in zip(node.children, node.children[1:], strict=False):
                if keyword.type == "keyword" and keyword.value in ("if", "elif"):
                    yield keyword, condition


class Uncalled:
    """A statement that only calls something is dropped: a check is not made, or nothing is written down."""

    def mutation_positions(self, node: Any) -> Iterator[Span]:
        """One for each such statement."""
        if node.type in ("atom_expr", "power") and node.parent.type == "simple_stmt" and node.children[0] != "yield":
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """Nothing in its place."""
        first, last = node.get_first_leaf(), node.get_last_leaf()
        first.value = "None and " + first.value
        del last
        return node


def mutants(root: Path, path: str, share: float = 1.0, seed: int = 0, kind: str | None = None) -> Iterator[Mutant]:
    """The mutants of the module at `path` below `root`, in the order of its lines for each operator in turn.

    With a `share` below 1 a random part of them, by the seed and the path; with a `kind` of `KINDS` those alone.
    """
    random = Random(f"{seed} {path}")
    source = (root / path).read_text(encoding="utf-8")
    tree = get_ast(source)
    passive = [*_declarations(tree)]
    lines, seen = source.splitlines(), {source}
    for operator in _operators():
        if kind is not None and operator.__name__ not in KINDS[kind]:
            continue
        positions = (span for node in ast_nodes(tree) for span in operator().mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            if random.random() >= share or any(begin <= start < end for begin, end in passive):
                continue
            try:
                changed = mutate_code(source, operator(), occurrence)
            except AttributeError:  # Cosmic Ray leaves no `except (module.Error, ...)` out
                continue
            if changed is None or changed in seen or not _compiles(changed):
                continue
            seen.add(changed)
            line = start[0]
            yield Mutant(path, line, lines[line - 1].strip(), changed.splitlines()[line - 1].strip(), changed)


@cache
def _operators() -> tuple[Callable[[], Any], ...]:
    names = (
        *(f"ReplaceBinaryOperator_{name}" for name in _BINARY),
        *(f"ReplaceComparisonOperator_{name}" for name in _COMPARISONS),
        *_OTHERS,
    )
    return (*(get_operator(f"core/{name}") for name in names), Opposite, Unguarded, Uncalled)


def _declarations(tree: Any) -> Iterator[Span]:
    """Types, decorators and what separates parameters: they decide nothing when a program runs, or all of it."""
    for node in ast_nodes(tree):
        if node.type == "annassign":
            yield node.children[0].start_pos, node.children[1].end_pos
        elif node.type == "tfpdef":
            yield node.children[1].start_pos, node.end_pos
        elif node.type == "decorator" or (node.type == "operator" and node.parent.type == "parameters"):
            yield node.start_pos, node.end_pos
        elif node.type == "param" and node.children[0].type == "operator":
            yield node.children[0].start_pos, node.children[0].end_pos
        elif node.type == "funcdef" and node.annotation is not None:
            yield node.annotation.start_pos, node.annotation.end_pos


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True
