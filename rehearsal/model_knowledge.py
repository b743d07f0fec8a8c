"""What the simulated model knows: enough to answer the questions that people try a model with.

It looks answers up and reads tool arguments from the question. It invents nothing: a name that the question does not
have must not show up in an answer, since the acceptance of a real model fails for that.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

JsonSchema = Mapping[str, object]

_CAPITALS = {
    "Argentina": "Buenos Aires",
    "Brazil": "Brasília",
    "Chile": "Santiago",
    "Colombia": "Bogotá",
    "Ecuador": "Quito",
    "Mexico": "Mexico City",
    "Peru": "Lima",
    "Poland": "Warsaw",
    "Portugal": "Lisbon",
    "Spain": "Madrid",
    "Uruguay": "Montevideo",
}
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")

_CAPITAL = re.compile(r"capital of (\w+)", re.IGNORECASE)
_SUM = re.compile(r"(\d+)\s*(?:plus|\+)\s*(\d+)", re.IGNORECASE)
_COUNT = re.compile(rf"from ({'|'.join(_NUMBERS)}) to ({'|'.join(_NUMBERS)})\b", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Words with a capital letter behind a preposition, with the small words that names have inside: "in Rio de Janeiro".
_UPPER = r"[A-ZÀ-ÖØ-Þ][\w'-]*"
_NAME = re.compile(rf"\b(?:in|of|for|to|at)\s+({_UPPER}(?:\s+(?:(?:de|do|da|del|dos|la)\s+)?{_UPPER})*)")


def known_answer(question: str) -> str | None:
    """The answer to a question for a capital, a sum or a count; None for any other question."""
    if asked := _CAPITAL.search(question):
        country = asked[1].capitalize()
        return f"The capital of {country} is {_CAPITALS[country]}." if country in _CAPITALS else None
    if asked := _SUM.search(question):
        return f"It is {int(asked[1]) + int(asked[2])}."
    if asked := _COUNT.search(question):
        first, last = (_NUMBERS.index(word.lower()) for word in asked.groups())
        return ", ".join(_NUMBERS[first : last + 1]) + "."
    return None


def arguments_for(schema: JsonSchema, question: str) -> object:
    """A value that the schema accepts, as far as types, properties and choices go, taken from the question.

    A choice is the one that the question mentions, else the first. A text is the name that the question has, else the
    question itself: without a name in it there is nothing else to say.
    """
    question = unicodedata.normalize("NFC", question)
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        mentioned = (choice for choice in choices if str(choice).casefold() in question.casefold())
        return next(mentioned, choices[0])
    properties = schema.get("properties")
    if isinstance(properties, dict):
        return {name: arguments_for(part, question) for name, part in properties.items() if isinstance(part, dict)}
    return _value(str(schema.get("type", "object")), question)


def _value(kind: str, question: str) -> object:
    if kind == "string":
        name = _NAME.search(question)
        return name[1] if name else question
    if kind in ("integer", "number"):
        number = _NUMBER.search(question)
        amount = float(number[0]) if number else 0.0
        return int(amount) if kind == "integer" else amount
    return {"boolean": True, "array": [], "null": None}.get(kind, {})
