"""The questions of the acceptance, and how a coherent answer to each is told from fluent nonsense.

An engine with a broken kernel, a wrong quantisation or a wrong chat template answers in the right shape and about
nothing. So each question has one right answer, which small models know too, and no question contains its answer: a
server that repeats the question passes no check. Case, accents and words around the answer do not count.
"""

import re
import unicodedata
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

TOOL = "get_weather"

CAPITAL = "In one short sentence: what is the capital of Brazil?"
SUM = "Think briefly, then answer with the number: what is 17 plus 25?"
COUNT = "Write the numbers from one to ten as words."
WEATHER = f"What is the weather in São Paulo in celsius? Call {TOOL}; do not answer from memory."

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTED = re.compile(r"\b" + r"\b.*?\b".join(_NUMBERS) + r"\b", re.DOTALL)


class WeatherArguments(BaseModel):
    """The parameters of the tool that the check offers; the answer's arguments must fit exactly."""

    model_config = ConfigDict(extra="forbid")

    city: str = Field(min_length=1)
    unit: Literal["celsius", "fahrenheit"]

    def are_those_of_the_question(self) -> bool:
        return "sao paulo" in _plain(self.city) and self.unit == "celsius"


def names_the_capital(text: str) -> bool:
    """Whether an answer to CAPITAL names Brasília."""
    return re.search(r"\bbrasilia\b", _plain(text)) is not None


def gives_the_sum(text: str) -> bool:
    """Whether an answer to SUM has the number 42, not as a part of another number."""
    return re.search(r"(?<![\d.,])42(?!\d)", text) is not None


def counts_to_ten(text: str) -> bool:
    """Whether an answer to COUNT has all ten words in their order."""
    return _COUNTED.search(_plain(text)) is not None


def _plain(text: str) -> str:
    """Lower case without accents."""
    letters = unicodedata.normalize("NFKD", text)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()
