"""Texts that people write: comments, guidelines, reasons."""

from __future__ import annotations

from accuacl.base.errors import InputError


def check_text(text: str, what: str, longest: int, least: int = 1) -> str:
    """The text without spaces around it; refused if it is too short or long, or has what cannot be printed."""
    text = text.replace("\r\n", "\n").strip()
    printable = all(letter.isprintable() or letter == "\n" for letter in text)
    if not least <= len(text) <= longest or not printable:
        raise InputError(f"{what} has {least} to {longest} printable characters; write another one.")
    return text
