# SPDX-License-Identifier: Apache-2.0
"""Filters as docs/filters.md defines them: an evaluator, and random attributes and filters.

    Items(attributes).admitted(text, parameters, types)  the mask of the items that a filter admits
    Draw(rng, types).attributes() and .filter()          random ones
"""

import re
from datetime import datetime, timedelta, timezone
from fractions import Fraction

import numpy as np

# An attribute of each type. Few items have the same seller.
TYPES = {"available": "bool", "country": "keyword", "seller": "keyword", "tags": "keywords", "year": "integer",
         "price": "number", "expires": "time"}
TOKEN = re.compile(r"\s*(?:('(?:[^']|'')*')|(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(\w+)|\$(\d+)|(<=|>=|!=|[=<>(),]))")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def as_time(value):
    """Return milliseconds since 1970, of an integer or of a text as in RFC 3339."""
    if not isinstance(value, str):
        return value
    return Fraction((datetime.fromisoformat(value) - EPOCH) // timedelta(microseconds=1), 1000)


def is_of(kind, value):
    """Can an attribute of this type have the plain value?"""
    if kind == "keywords":
        return isinstance(value, list) and all(isinstance(text, str) for text in value)
    if kind == "time":
        return type(value) is int and value >= 0
    kinds = {"bool": (bool,), "keyword": (str,), "integer": (int,), "number": (int, float)}
    return type(value) in kinds[kind]


def having(name, test):
    """Return a function of Items: the mask of those that have the attribute, and with such a value."""
    def mask(items):
        where, values = items.column(name)
        out = np.zeros(len(items), bool)
        out[where] = [test(value) for value in values]
        return out
    return mask


class Parser:
    """Recursive descent over a filter that is known to be right. Each rule returns a function of Items: the mask of
    those that it admits."""

    def __init__(self, text, parameters, types):
        self.parameters, self.types = parameters, types
        self.tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            assert found, f"no token at {at} of {text!r}"
            self.tokens.append(found)
            at = found.end()
        self.next = 0

    def peek(self):
        """Return the next token as a word in lower case, or as a sign; None at the end, and for a value."""
        if self.next == len(self.tokens):
            return None
        _, _, word, _, sign = self.tokens[self.next].groups()
        return word.lower() if word else sign

    def skip(self, *words):
        if self.peek() not in words:
            return None
        self.next += 1
        return self.tokens[self.next - 1].group(0).strip().lower()

    def expect(self, *words):
        assert self.skip(*words), f"expected one of {words}, not {self.peek()}"

    def filter(self):
        terms = [self.conjunction()]
        while self.skip("or"):
            terms.append(self.conjunction())
        return lambda items: np.logical_or.reduce([term(items) for term in terms])

    def conjunction(self):
        terms = [self.operand()]
        while self.skip("and"):
            terms.append(self.operand())
        return lambda items: np.logical_and.reduce([term(items) for term in terms])

    def operand(self):
        if self.skip("not"):
            inner = self.operand()
            return lambda items: ~inner(items)
        if self.skip("("):
            inner = self.filter()
            self.expect(")")
            return inner
        if self.skip("has"):
            self.expect("(")
            name = self.attribute()
            self.expect(")")
            return having(name, lambda x: True)
        name = self.attribute()
        return self.comparison(name, self.types[name])

    def attribute(self):
        self.next += 1
        return self.tokens[self.next - 1].group(3)

    def comparison(self, name, kind):
        operator = self.skip("=", "!=", "<", "<=", ">", ">=", "between", "in", "has")
        if operator is None:
            return having(name, lambda x: x is True)
        if operator in ("in", "has"):
            values = self.values(kind)
            if operator == "has":
                return having(name, lambda x: not set(x).isdisjoint(values))
            return having(name, lambda x: any(x == value for value in values))
        value = self.value(kind)
        if operator == "between":
            self.expect("and")
            end = self.value(kind)
            return having(name, lambda x: value <= x <= end)
        compare = {"=": lambda x: x == value, "!=": lambda x: x != value, "<": lambda x: x < value,
                   "<=": lambda x: x <= value, ">": lambda x: x > value, ">=": lambda x: x >= value}[operator]
        return having(name, compare)

    def values(self, kind):
        if not self.skip("("):
            value = self.value(kind)
            return value if isinstance(value, list) else [value]
        values = [self.value(kind)]
        while self.skip(","):
            values.append(self.value(kind))
        self.expect(")")
        return values

    def value(self, kind):
        text, number, word, parameter, _ = self.tokens[self.next].groups()
        self.next += 1
        if parameter:
            plain = self.parameters[int(parameter) - 1]
        elif text is not None:
            plain = text[1:-1].replace("''", "'")
        elif number:
            plain = int(number) if re.fullmatch(r"-?\d+", number) else float(number)
        else:
            plain = {"true": True, "false": False}[word.lower()]
        if kind == "time":
            return [as_time(x) for x in plain] if isinstance(plain, list) else as_time(plain)
        return plain


def parse(text, parameters, types):
    """Return a function of Items: the mask of those that the filter admits."""
    if not text.strip():
        return lambda items: np.ones(len(items), bool)
    parser = Parser(text, parameters, types)
    admits = parser.filter()
    assert parser.next == len(parser.tokens), f"{text!r} goes on after a filter"
    return admits


class Items(list):
    """The attributes of items, as plain values by name. It keeps what it has found out."""

    def __init__(self, attributes):
        super().__init__(attributes)
        self.columns, self.masks = {}, {}

    def column(self, name):
        """Return the numbers of the items that have the attribute, and its values."""
        if name not in self.columns:
            where = [i for i, item in enumerate(self) if name in item]
            self.columns[name] = np.array(where, np.intp), [self[i][name] for i in where]
        return self.columns[name]

    def admitted(self, text, parameters, types):
        """Return the mask of the items that the filter admits."""
        query = text, repr(parameters)
        if query not in self.masks:
            self.masks[query] = parse(text, parameters, types)(self)
        return self.masks[query]


class Draw:
    """Random attributes and filters. The values of filters are often those of items."""

    COUNTRIES = ["de", "at", "us", "jp", "it's", "\u00f6", "OR", "x" * 256]
    TAGS = ["dark", "space", "crime", "'", "\u732b", ""]
    NOW = 1790000000000

    def __init__(self, rng, types=None):
        self.rng, self.types = rng, types or TYPES

    def pick(self, options):
        return options[int(self.rng.integers(len(options)))]

    def value(self, name):
        """Return a value that an item may have."""
        rng, kind = self.rng, self.types[name]
        if kind == "bool":
            return bool(rng.random() < 0.7)
        if kind == "keyword":
            return f"seller {rng.integers(500)}" if name == "seller" else self.pick(self.COUNTRIES)
        if kind == "keywords":
            return [self.pick(self.TAGS) for _ in range(rng.integers(4))]
        if kind == "time":
            return self.NOW + int(rng.integers(-1000, 1000)) * 60000 if rng.random() < 0.95 else self.pick([0, 2 ** 62])
        if kind == "integer":
            far = [-2 ** 63, 2 ** 63 - 1, 0, 2 ** 53 + 1, -1]
            return self.pick(far) if rng.random() < 0.05 else int(2020 - rng.exponential(20))
        far = [-1e300, 5e-324, 0.0, -0.0, 2.0 ** 53, 1e17]
        return self.pick(far) if rng.random() < 0.05 else float(round(rng.exponential(20), 2))

    def attributes(self, share=0.8):
        """Return values of a random share of the attributes."""
        return {name: self.value(name) for name in self.types if self.rng.random() < share}

    def filter(self):
        """Return (text, parameters)."""
        self.parameters = []
        return self._tree(int(self.rng.integers(4))), self.parameters

    def _tree(self, depth):
        rng = self.rng
        if depth == 0:
            return self._comparison(self.pick(list(self.types)))
        kind = rng.integers(5)
        if kind == 0:
            return f"{self._word('not')} {self._operand(depth - 1)}"
        if kind <= 2:
            return f" {self._word('and')} ".join(self._operand(depth - 1) for _ in range(rng.integers(2, 4)))
        return f" {self._word('or')}\n".join(self._operand(depth - 1) for _ in range(rng.integers(2, 4)))

    def _operand(self, depth):
        # Without parentheses the precedences decide.
        tree = self._tree(depth)
        return f"({tree})" if self.rng.random() < 0.7 else tree

    def _word(self, word):
        return self.pick([word, word, word.upper(), word.title()])

    def _comparison(self, name):
        kind = self.types[name]
        if self.rng.random() < 0.1:
            return f"{self._word('has')}({name})"
        if kind == "bool":
            operator, value = self.pick(["", "=", "!="]), bool(self.rng.random() < 0.5)
            return f"{name} {operator} {self._literal(name, value)}" if operator else name
        if kind == "keywords":
            return f"{name} {self._word('has')} {self.pick([self._one, self._list])(name)}"
        operators = ["=", "!=", "in"] if kind == "keyword" else ["=", "!=", "<", "<=", ">", ">=", "between", "in"]
        operator = self.pick(operators)
        if operator == "in":
            return f"{name} {self._word('in')} {self._list(name)}"
        if operator == "between":
            return f"{name} {self._word('between')} {self._one(name)} {self._word('and')} {self._one(name)}"
        return f"{name} {operator} {self._one(name)}"

    def _plain(self, name):
        """Return a value that a comparison of the attribute may have."""
        kind, roll = self.types[name], self.rng.random()
        if kind == "keywords":
            return self.pick([*self.TAGS, "nobody has this"])
        value = self.value(name)
        if kind == "keyword":
            return value if roll < 0.95 else "nobody has this"
        if kind == "integer" and roll < 0.2:
            return float(value) + self.pick([0.0, 0.5])
        if kind == "time" and roll < 0.3 and value < 2 ** 42:
            return (EPOCH + timedelta(milliseconds=value)).isoformat().replace("+00:00", self.pick(["Z", "+00:00"]))
        return value

    def _one(self, name):
        return self._literal(name, self._plain(name))

    def _list(self, name):
        plain = [self._plain(name) for _ in range(self.rng.integers(5))]
        if not plain or self.rng.random() < 0.5:
            return self._parameter(plain)
        return "(" + ", ".join(self._literal(name, value) for value in plain) + ")"

    def _parameter(self, plain):
        self.parameters.append(plain)
        return f"${len(self.parameters)}"

    def _literal(self, name, plain):
        """Return a value as a literal, or as a parameter."""
        if self.rng.random() < 0.3 and len(self.parameters) < 60:
            return self._parameter(plain)
        if isinstance(plain, bool):
            return self._word("true" if plain else "false")
        if isinstance(plain, str):
            return "'" + plain.replace("'", "''") + "'"
        return repr(plain)
