"""Class names that may mean the same: equal but for case, spaces, hyphens, accents, or letters that look alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from accuacl.base.errors import near

UNSEEN = ("Zs", "Cf", "Cc", "Pd", "Pc")  # spaces, invisible characters, hyphens, underscores
# Letters of Greek, Cyrillic and extended Latin, each with the Latin letter that it looks like.
CAPITALS = (
    "ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ϹC ͿJ "  # Greek
    "АA ВB ЕE ЅS ІI ЈJ КK МM НH ОO РP СC ТT УY ХX ҮY ӀI ԌG ԚQ ԜW ҺH "  # Cyrillic
    "ØO ĐD ŁL ĦH ŦT ƖI"
)
SMALL = (
    "αa γy ιi κk νv οo ρp σo υu χx ωw ϲc ϳj "  # Greek
    "аa еe ѕs іi јj кk оo рp сc уy хx үy ӏl ԁd ԛq ԝw һh гr пn "  # Cyrillic
    "ıi ɑa ɡg øo đd łl ħh ŧt"
)

TABLES = tuple({pair[0]: pair[1] for pair in pairs.split()} for pairs in (CAPITALS, SMALL))


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Those of the names that look like this one, or differ from it in case, spaces, hyphens and accents alone.

    >>> near_names("Tiger ", ["lion", "tiger", "tigress"])
    ['tiger']
    >>> near_names("t\\u0456ger", ["lion", "tiger"]), near_names("sea-lion", ["Sea Lion"]), near_names("cat", ["car"])
    (['tiger'], ['Sea Lion'], [])
    """
    looks = _looks(name)
    return [other for other in names if any(a == b for a, b in zip(looks, _looks(other), strict=True))]


def meant(name: str, names: Iterable[str]) -> str:
    """The class that was probably meant by a name that is not known: it looks alike, or is spelt nearly so; else "".

    >>> meant("TIGER", ["lion", "tiger"]), meant("tigre", ["lion", "tiger"]), meant("zebra", ["lion"])
    ('tiger', 'tiger', '')
    """
    names = list(names)
    alike = near_names(name, names)
    return alike[0] if alike else near(name, names)


def alike_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of different names that look alike, each later one with the first that it may be taken for.

    >>> alike_pairs(["tiger", "lion", "Tiger", "Li-on", "tiger"])
    [('tiger', 'Tiger'), ('lion', 'Li-on')]
    """
    first: list[dict[str, str]] = [{}, {}]
    pairs = []
    for name in dict.fromkeys(names):
        looks = _looks(name)
        other = next((known[look] for known, look in zip(first, looks, strict=True) if look in known), None)
        if other is not None:
            pairs.append((other, name))
        for known, look in zip(first, looks, strict=True):
            known.setdefault(look, name)
    return pairs


def _looks(name: str) -> tuple[str, str]:
    """What a name looks like in capitals and in small letters: a letter may look like another in one of them alone."""
    plain = unicodedata.normalize("NFKC", name)
    return _bare(plain.upper(), TABLES[0]), _bare(plain.casefold(), TABLES[1])


def _bare(name: str, alike: dict[str, str]) -> str:
    """Without accents, spaces, hyphens, underscores and what cannot be seen; look-alike letters as Latin ones.

    A name of nothing else stays as it is.
    """
    letters = "".join(alike.get(letter, letter) for letter in unicodedata.normalize("NFKD", name))
    kept = [c for c in letters if not "\u0300" <= c <= "\u036f" and unicodedata.category(c) not in UNSEEN]
    return "".join(kept) or name
