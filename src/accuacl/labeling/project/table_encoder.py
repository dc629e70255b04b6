"""Rows of a table as vectors: columns of numbers, categories, dates and texts, by what the first rows were like.

    encoder = fit(rows)                      # rows: dictionaries; what it has learned is plain JSON
    vectors = encode(encoder, other_rows)    # float32, a row each; new categories and missing values are fine

A number becomes its distance from the mean in standard deviations and its place among the first rows. A category
becomes a 1 in its own place; one that was rare or absent at first shares a place with others. Dates become a number and
their places in the year, the week and the day, texts their words. Every column has a place for a missing value. This
file needs NumPy alone: an exported model has a copy of it.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Row = Mapping[str, Any]
Column = dict[str, Any]
Parse = Callable[[Any], float]

MISSING = ("", "na", "n/a", "nan", "null", "none", "nil", "?", "-")  # in columns of numbers and dates
MOST_STRANGE = 3  # other words that may stand for missing values there,
STRANGE_SHARE = 0.2  # in at most this share of the rows
MOST_CATEGORIES = 50  # that have a place of their own
SHARED = 8  # places for all other categories
WORDS = 64  # places for the words of texts
KNOTS = 33  # quantiles
HUGE = 1e150  # larger numbers count as this one
LIMIT = 5.0  # standard deviations at which numbers are clipped
FEW = 20  # rows; with fewer, different values do not mean that a column names the rows
FORMATS = ("iso", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%Y %H:%M", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M",
           "%H:%M", "%H:%M:%S")  # fmt: skip
DAY, WEEK, YEAR = 86_400.0, 7 * 86_400.0, 365.2425 * 86_400.0


class BadTable(ValueError):
    """A table that is not like the first one; the sentence says where."""


def fit(rows: Sequence[Row]) -> list[Column]:
    """What each column is like: its name, kind and facts."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    return [{"name": name} | _fit_column([row.get(name) for row in rows]) for name in names]


def encode(columns: Sequence[Column], rows: Sequence[Row]) -> NDArray[np.float32]:
    """A vector for each row. BadTable: a value is of another kind than those of its column were at first."""
    blocks = [np.empty((len(rows), 0))]
    for column in columns:
        if column["kind"] in ENCODERS:
            blocks.append(ENCODERS[column["kind"]](column, [row.get(column["name"]) for row in rows]))
    return np.hstack(blocks).astype(np.float32)


def without_values(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """The columns without categories, and words for missing values, that none of the rows has; vectors stay the same.

    In its place a category leaves a word that begins with a space, as none does, so that the others keep theirs.
    """
    left = []
    for column in columns:
        there = {_category(row.get(column["name"])) for row in rows}
        if "values" in column:
            column = column | {"values": [v if v in there else f" {i}" for i, v in enumerate(column["values"])]}
        if "missing" in column:
            column = column | {"missing": [word for word in column["missing"] if word in there]}
        left.append(column)
    return left


def check_names(columns: Sequence[Column], names: Collection[str]) -> None:
    """BadTable: a column that is used is missing."""
    missing = [column["name"] for column in columns if column["kind"] in ENCODERS and column["name"] not in names]
    if missing:
        raise BadTable(f"columns of the first task are missing: {', '.join(missing)}; add them.")


def _fit_column(values: list[Any]) -> Column:
    """The first kind that all values fit."""
    there = Counter(value for value in values if not _is_missing(value))
    count = there.total()
    if there and not any(isinstance(value, bool) for value in there):
        column = _fit_numbers(there) or _fit_dates(there)
        if column is not None:
            return column
    counts = Counter[str]()
    for value, times in there.items():
        counts[_category(value)] += times
    words = sum(len(value.split()) for value in counts) / max(1, len(counts))
    if len(counts) == count >= FEW and words < 3:
        return {"kind": "unused", "why": "every value is different"}
    if count >= FEW and len(counts) > count / 2 and words >= 3:
        return {"kind": "text"}
    common = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
    return {"kind": "category", "values": common}


def _fit_numbers(there: Counter[Any]) -> Column | None:
    known, strange = _parsed(there, _number)
    known = np.clip(known, -HUGE, HUGE)
    if strange is None or not len(known) or any(isinstance(value, str) and _padded(value) for value in there):
        return None
    different = np.unique(known)
    if len(different) == there.total() >= FEW and different[-1] - different[0] == len(different) - 1:
        return {"kind": "unused", "why": "it numbers the rows"}
    quantiles, ranks = np.quantile(known, np.linspace(0, 1, KNOTS)), np.linspace(-1, 1, KNOTS)
    knots = np.unique(quantiles)
    places = [float(ranks[quantiles == knot].mean()) for knot in knots]  # that of equal numbers is in their middle
    return {"kind": "number", "missing": strange, **_spread(known), "knots": knots.tolist(), "places": places}


def _fit_dates(there: Counter[Any]) -> Column | None:
    for form in FORMATS:
        known, strange = _parsed(there, partial(_seconds, form=form))
        if strange is not None and len(known):
            return {"kind": "date", "missing": strange, "format": form, **_spread(known)}
    return None


def _spread(known: NDArray[np.float64]) -> Column:
    """Mean and standard deviation; of a constant column its size, so that a later change is seen but is not huge."""
    mean, deviation = float(known.mean()), float(known.std())
    return {"mean": mean, "std": deviation if deviation > 1e-9 * max(1.0, abs(mean)) else max(1.0, abs(mean))}


def _parsed(there: Counter[Any], parse: Parse) -> tuple[NDArray[np.float64], list[str] | None]:
    """The finite numbers that the values stand for, and the few words that stand for none; None: there are too many."""
    numbers, counts, strange = list[float](), list[int](), Counter[str]()
    for value, count in there.items():
        try:
            numbers.append(parse(value))
            counts.append(count)
        except ValueError:
            strange[_category(value)] += count
            if len(strange) > MOST_STRANGE or any(letter.isdigit() for letter in _category(value)):
                return np.empty(0), None
    known = np.repeat(np.array(numbers, np.float64), counts)
    return known[np.isfinite(known)], sorted(strange) if strange.total() <= STRANGE_SHARE * there.total() else None


def _encode_numbers(column: Column, values: list[Any]) -> NDArray[np.float64]:
    x = np.clip(_read(column, values, _number, "numbers"), -HUGE, HUGE)
    known, away = ~np.isnan(x), np.clip((x - column["mean"]) / column["std"], -LIMIT, LIMIT)
    quantile = math.sqrt(3) * np.interp(np.where(known, x, 0), column["knots"], column["places"])  # a variance of 1
    both = [np.where(known, entry, 0) / math.sqrt(2) for entry in (away, quantile)]  # together they weigh as one number
    return np.stack([*both, ~known], axis=1).astype(np.float64)


def _encode_dates(column: Column, values: list[Any]) -> NDArray[np.float64]:
    x = _read(column, values, partial(_seconds, form=column["format"]), "dates")
    known = ~np.isnan(x)
    entries = [np.clip((x - column["mean"]) / column["std"], -LIMIT, LIMIT)]
    for period in (DAY, WEEK, YEAR):
        angle = 2 * np.pi * (x % period) / period
        entries += [np.sin(angle), np.cos(angle)]
    return np.stack([*(np.where(known, entry, 0) for entry in entries), ~known], axis=1).astype(np.float64)


def _encode_categories(column: Column, values: list[Any]) -> NDArray[np.float64]:
    place = {"": 0} | {value: 1 + i for i, value in enumerate(column["values"])}
    out, known = np.zeros((len(values), len(place) + SHARED)), dict[Any, int]()
    kinds = [(type(value), value) for value in values]  # False is not 0 here
    for kind, value in set(kinds):
        name = _category(value)
        known[kind, value] = place[name] if name in place else len(place) + _hash(name) % SHARED
    out[np.arange(len(values)), [known[key] for key in kinds]] = 1
    return out


def _encode_texts(column: Column, values: list[Any]) -> NDArray[np.float64]:
    out = np.zeros((len(values), WORDS))
    for row, value in zip(out, values, strict=True):
        for word in _category(value).casefold().split():
            row[_hash(word) % WORDS] += 1
    return out / np.maximum(1.0, np.linalg.norm(out, axis=1, keepdims=True))


ENCODERS = {"number": _encode_numbers, "date": _encode_dates, "category": _encode_categories, "text": _encode_texts}


def _read(column: Column, values: list[Any], parse: Parse, what: str) -> NDArray[np.float64]:
    """Numbers with NaN for what is missing."""
    numbers, known = np.full(len(values), np.nan), dict[Any, float]()
    for row, value in enumerate(values):
        if _is_missing(value) or (column["missing"] and _category(value) in column["missing"]):
            continue
        try:
            if value not in known:
                known[value] = parse(value)
            numbers[row] = known[value]
        except ValueError:
            raise BadTable(
                f"row {row} has {str(value)[:80]!r} in the column {column['name']!r}, which held {what} in the first "
                "task; fix it, or leave the cell empty."
            ) from None
    return numbers


def _number(value: Any) -> float:
    if isinstance(value, str) and value.strip().casefold() in MISSING:
        return math.nan
    if not isinstance(value, str | int | float) or (isinstance(value, str) and "_" in value):
        raise ValueError
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf  # type: ignore[operator]


def _padded(text: str) -> bool:
    """Whether zeros lead a number, as in codes: 007."""
    digits = text.strip().lstrip("+-")
    return digits.startswith("0") and digits[1:2].isdigit()


def _seconds(value: Any, form: str) -> float:
    """A date or time as seconds, in UTC."""
    if not isinstance(value, str):
        raise ValueError
    text = value.strip()
    if text.casefold() in MISSING:
        return math.nan
    moment = datetime.fromisoformat(text) if form == "iso" else datetime.strptime(text, form)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or value != value


def _category(value: Any) -> str:
    """A value as the name of a category; "" if it is missing."""
    if _is_missing(value):
        return ""
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
    return text.lower() if text.lower() in ("true", "false") else text


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "replace"))
