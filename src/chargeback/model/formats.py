"""How documents can write numbers, days, and the currency of an amount: most choices are examples of themselves."""

from __future__ import annotations

from typing import Literal

Numbers = Literal["1,234.56", "1.234,56", "1 234,56"]
Dates = Literal["14 November 2026", "14.11.2026", "2026-11-14"]
CurrencyPlace = Literal["after", "before"]
