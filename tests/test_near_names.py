"""Class names that may mean the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accuacl.labeling.store import near_names
from accuacl.labeling.store.near import TABLES
from effort import examples


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("TIGER", "tiger"),
        ("  tiger\t", "tiger"),
        ("tіgеr", "tiger"),  # Cyrillic і and е
        ("ΤIGER", "tiger"),  # Greek capital tau
        ("ТИГР", "тигр"),
        ("νan", "van"),  # Greek nu, which is like v as a small letter alone
        ("Νora", "nora"),  # and like N as a capital alone
        ("tiger", "tiger"),
        ("ti\u200bger", "tiger"),  # a space of no width
        ("ﬁsh", "fish"),
        ("café", "cafe\u0301"),
        ("cafe", "Café"),
        ("Straße", "STRASSE"),
        ("sea-lion", "Sea Lion"),
        ("sea_lion", "sealion"),
        ("ISTANBUL", "ıstanbul"),
    ],
)
def test_names_that_look_alike_are_found_both_ways(typed, known):
    assert near_names(typed, ["other", known]) == [known]
    assert near_names(known, [typed]) == [typed]


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("cat", "car"),
        ("class 1", "class 2"),
        ("male", "female"),
        ("a", "b"),
        ("-", "_"),
        ("की", "कि"),
        ("modern", "modem"),
    ],
)
def test_other_names_are_not(typed, known):
    assert near_names(typed, [known]) == []


def test_all_that_are_near_are_named_in_their_order():
    assert near_names("tiger", ["Tiger", "lion", "TIGER", "tiger"]) == ["Tiger", "TIGER", "tiger"]
    assert near_names("tiger", []) == []


def test_every_pair_is_a_letter_and_a_latin_one_of_its_case():
    for table, case in zip(TABLES, ("Lu", "Ll"), strict=True):
        for letter, latin in table.items():
            assert latin.isascii()
            assert not letter.isascii()
            assert unicodedata.category(latin) == case
            assert unicodedata.category(letter) in (case, "Lo")


@examples(60, 1000)
@given(st.text(max_size=8), st.text(max_size=8))
def test_a_name_is_near_itself_in_any_case_and_nearness_has_no_direction(a, b):
    assert near_names(a, [a]) == [a]
    assert near_names(a, [b]) == ([b] if near_names(b, [a]) else [])
    assert near_names(a, [a.upper()]) == [a.upper()]
