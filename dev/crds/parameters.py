"""The rules of a BlueprintVersion's parameters and constants beyond their models.

The rules that the API server can say. Source: docs/decisions/0020.
"""

from __future__ import annotations

from typing import Final

from dev.crds import rules
from function.contract import limits, patterns
from function.contract.catalog import parameters, published

_NO_STRING: Final[rules.Overlay] = {"minLength": 1, "maxLength": 0}
_NO_NUMBER: Final[rules.Overlay] = {"minimum": 1, "maximum": 0}
_NO_BOOLEAN: Final[rules.Overlay] = {"not": {"enum": [True, False]}}
_NO_OBJECT: Final[rules.Overlay] = {"minProperties": 1, "maxProperties": 0}
_NO_ARRAY: Final[rules.Overlay] = {"minItems": 1, "maxItems": 0}
"""Bounds that no value of a type meets; they do not apply to values of another type."""


_INTEGER: Final[rules.Overlay] = {
    "minimum": -limits.EXACT_INTEGER_MAX,
    "maximum": limits.EXACT_INTEGER_MAX,
    "multipleOf": 1,
}
_STRING: Final[rules.Overlay] = {"maxLength": limits.STRING_MAX_BYTES}


def _values_of(type_name: str, others: tuple[str, ...], *schemas: rules.Overlay) -> rules.Overlay:
    one = {"allOf": list(schemas)}
    enum = _NO_ARRAY if type_name == "boolean" else {"items": one}
    return {
        "anyOf": [
            {"properties": {"type": {"enum": list(others)}}},
            {"properties": {"type": {"enum": [type_name]}, "default": one, "enum": enum}},
        ]
    }


# A field without a type is invisible to CEL, so the rules about the types of values are plain
# schema. That a default is within the limits nobody but the function and the reconciler can say.
PARAMETER: Final[rules.Overlay] = {
    "allOf": [
        _values_of("boolean", ("integer", "string"), {"enum": [True, False]}),
        _values_of(
            "integer",
            ("boolean", "string"),
            _NO_STRING,
            _NO_BOOLEAN,
            _NO_OBJECT,
            _NO_ARRAY,
            _INTEGER,
        ),
        _values_of(
            "string",
            ("boolean", "integer"),
            _NO_NUMBER,
            _NO_BOOLEAN,
            _NO_OBJECT,
            _NO_ARRAY,
            _STRING,
        ),
        {
            "anyOf": [
                {"properties": {"required": {"enum": [False]}}},
                {"not": {"required": ["default"]}},
            ]
        },
    ],
    **rules.rules(
        (
            (
                "self.type == 'string' ||"
                " !(has(self.pattern) || has(self.minLength) || has(self.maxLength))"
            ),
            "pattern, minLength and maxLength are for the type string",
        ),
        (
            "self.type == 'integer' || !(has(self.minimum) || has(self.maximum))",
            "minimum and maximum are for the type integer",
        ),
        (
            "!has(self.minLength) || !has(self.maxLength) || self.minLength <= self.maxLength",
            "minLength must not exceed maxLength",
        ),
        (
            "!has(self.minimum) || !has(self.maximum) || self.minimum <= self.maximum",
            "minimum must not exceed maximum",
        ),
        (
            (
                "!has(self.pattern) || !has(self.maxLength)"
                f" || self.maxLength <= {patterns.MATCHED_MAX}"
            ),
            f"maxLength must be at most {patterns.MATCHED_MAX} where there is a pattern",
        ),
    ),
}

PATTERN: Final[rules.Overlay] = {
    "pattern": r"^\^[ -~]*\$$",
    **rules.rules(
        (
            r"!self.matches(r'[\\][A-Za-z0-9\\]|[(][?][^:]|&&|--|~~|[[]:')",
            "must use literals, ., [classes], (groups), | and ? * + {n,m} alone",
        ),
        # What RE2 cannot read is an error of the expression, and so a refusal.
        ("''.matches(self) || !''.matches(self)", "must be a regular expression that RE2 accepts"),
    ),
}

UNRESERVED: Final = rules.rule(
    f"!(self in {sorted(parameters.RESERVED)})", "is reserved for the bootstrap material"
)

SPEC: Final[rules.Overlay] = {
    "x-kubernetes-validations": [
        {
            "rule": "!has(oldSelf.terminalConditions) || has(self.terminalConditions)",
            "message": "terminalConditions: cannot be taken away",
        },
        *rules.fixed("parameters", "constants", "registration"),
        {
            "rule": "!has(self.constants) || !has(self.parameters)"
            " || self.constants.all(c, !self.parameters.exists(p, p.name == c.name))",
            "message": "must have no name that a parameter has",
            "fieldPath": ".constants",
        },
        {
            "rule": "!has(self.constants) || !has(self.parameters)"
            f" || size(self.constants) + size(self.parameters) <= {published.PARAMETERS_MAX}",
            "message": f"must be at most {published.PARAMETERS_MAX} together with parameters",
            "fieldPath": ".constants",
        },
    ]
}

CONSTANT_VALUE: Final[rules.Overlay] = {"allOf": [_NO_OBJECT, _NO_ARRAY, _INTEGER, _STRING]}
