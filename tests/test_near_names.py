"""Class names that may mean the same."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, strategies as st

from accuacl.base.errors import InputError
from accuacl.labeling.project import add_gold, take_label_file
from accuacl.labeling.store import alike_pairs, meant, near_names
from accuacl.labeling.store.classes import LATIN
from commands import accuacl as command
from effort import examples
from scripted import new_project


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("TIGER", "tiger"),
        ("  tiger\t", "tiger"),
        ("tіgеr", "tiger"),  # Cyrillic і and е
        ("ΤIGER", "tiger"),  # Greek capital tau
        ("ТИГР", "тигр"),
        ("νan", "van"),  # Greek nu
        ("Сat", "cat"),  # Cyrillic С, which a capital looks like
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
    for letter, latin in ((chr(a), chr(b)) for a, b in LATIN.items()):
        assert latin.isascii()
        assert not letter.isascii()
        assert {unicodedata.category(latin), unicodedata.category(letter)} == {"Ll"}


@examples(60, 1000)
@given(st.text(max_size=8), st.text(max_size=8))
def test_a_name_is_near_itself_in_any_case_and_nearness_has_no_direction(a, b):
    assert near_names(a, [a]) == [a]
    assert near_names(a, [b]) == ([b] if near_names(b, [a]) else [])
    assert near_names(a, [a.upper()]) == [a.upper()]


def test_pairs_that_look_alike_are_those_of_near_names():
    names = ["Tiger", "tiger", "lion", "TIGER", "li-on", "cat", "cat"]
    assert alike_pairs(names) == [("Tiger", "tiger"), ("Tiger", "TIGER"), ("lion", "li-on")]
    assert alike_pairs([]) == []


@pytest.mark.parametrize(("typed", "probably"), [("TIGER", "tiger"), ("tіger", "tiger"), ("tigr", "tiger"), ("x", "")])
def test_the_class_that_was_meant(typed, probably):
    assert meant(typed, ["lion", "tiger"]) == probably


def test_commands_ask_whether_another_class_was_meant(tmp_path):
    with new_project(tmp_path / "p") as project:
        project.store.add_class("tiger")
        for name, new in (("Tiger", True), ("t\u0456ger", True), ("TIGER", False), ("tigr", False)):
            (tmp_path / "l.csv").write_text(f"name,class\nt0-0,{name}\n", encoding="utf-8")
            taken = take_label_file(project, tmp_path / "l.csv", "Bob", new_classes=new)
            assert taken.labels == taken.waiting == 0
            assert f"there is no class {name!r}; did you mean tiger?" in taken.refused[0]
        (tmp_path / "g.csv").write_text("name,class\nt0-0,Tiger\n")
        with pytest.raises(InputError, match=r"line 2: there is no class 'Tiger'; did you mean tiger\?"):
            add_gold(project, tmp_path / "g.csv")
        assert [c.name for c in project.store.classes()] == ["tiger"]


def test_a_new_project_is_warned_of_classes_that_look_alike(tmp_path):
    (tmp_path / "t.csv").write_text("text,kind\na,Lion\nb,\nc,dog\n")
    given = ["--texts", "t.csv", "--label-column", "kind", "--classes", "tiger,Tiger,lion", "--model", "none"]
    ended = command("project", "new", "p", *given, cwd=tmp_path, width=200)
    assert ended.returncode == 0, ended.stderr
    assert "warning: the classes 'tiger' and 'Tiger' look alike; did you mean one class?" in ended.stdout
    assert "the classes 'lion' and 'Lion' look alike" in ended.stdout
    assert "dog" not in ended.stdout
