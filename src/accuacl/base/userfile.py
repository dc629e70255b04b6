"""Python files of users: their strategies and models."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from accuacl.base.errors import InputError

PREFIX = "accuacl_user_"
REGISTERED: list[tuple[str, str]] = []  # kind and name of all that users have registered in this process


def load_file(path: Path, fresh: bool = False) -> ModuleType:
    """Import a Python file by its path, once (`fresh`: again).

    An exception in the file is not caught: its author needs the traceback.
    """
    name = module_name(path)
    if is_loaded(path) and not fresh:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path) if path.is_file() else None
    if spec is None or spec.loader is None:
        wrong = f"{path} is not a Python file" if path.exists() else f"there is no Python file {path}"
        raise InputError(f"{wrong}; give the path of one, which ends in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs: dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SystemExit):
            below = '`if __name__ == "__main__"`'
            raise InputError(
                f"{path} ends the whole program when it is imported; move that code below {below}."
            ) from None
        raise
    return module


def users_traceback(error: BaseException) -> str:
    """The traceback of an error in a user's file, from that file on; "" if the error is ours."""
    if isinstance(error, SyntaxError) and error.filename and Path(error.filename).is_file():
        return "".join(traceback.format_exception_only(error))
    step = _users_step(error)
    return "".join(traceback.format_exception(type(error), error, step)) if step else ""


def users_line(error: BaseException) -> str:
    """The line of a user's file that led to an error, as file and line; "" if the error is ours."""
    step = _users_step(error)
    return f"{step.tb_frame.f_code.co_filename}, line {step.tb_lineno}" if step else ""


def _users_step(error: BaseException) -> TracebackType | None:
    """The first step of a traceback that is in a user's file."""
    step = error.__traceback__
    while step and not str(step.tb_frame.f_globals.get("__name__")).startswith(PREFIX):
        step = step.tb_next
    return step


def is_loaded(path: Path) -> bool:
    """Whether the file has been imported in this process."""
    return module_name(path) in sys.modules


def loaded_files() -> list[Path]:
    """The users' files that have been imported in this process."""
    return [Path(str(module.__file__)) for name, module in sys.modules.items() if name.startswith(PREFIX)]


def load_function(place: str, fresh: bool = False) -> Any:
    """The function without arguments that `file.py:function` names."""
    file, name = check_function(place)
    function = getattr(load_file(Path(file), fresh), name, None)
    if not callable(function):
        raise InputError(f"{file} has no function {name}; define it there or give another name.")
    if required := required_arguments(function):
        location = place_of(function) or file
        raise InputError(f"{name} ({location}) has a required argument {required[0]}; give it a default.")
    return function


def is_own(model: str) -> bool:
    """Whether a model is a user's own function, as in `net.py:build`.

    >>> is_own("net.py:build"), is_own("resnet18")
    (True, False)
    """
    return model.rpartition(":")[0].endswith(".py")


def required_arguments(function: Any) -> list[str]:
    """The names of arguments without a default.

    >>> required_arguments(lambda width, depth=2, *more: 0)
    ['width']
    """
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.default is each.empty and each.kind not in several]


def takes(function: Any, count: int) -> bool:
    """Whether something can be called with this many positional arguments; False if Python cannot tell.

    >>> takes(lambda a, b, c=0: 0, 2), takes(lambda a: 0, 2), takes(int, 1), takes(3, 0)
    (True, False, False, False)
    """
    try:
        inspect.signature(function).bind(*range(count))
    except (TypeError, ValueError):
        return False
    return True


def check_function(place: str) -> tuple[str, str]:
    """The file and the function that `file.py:function` names; the file must be there."""
    file, _, name = place.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise InputError(f"model is {place!r}; give a Python file and a function in it, such as net.py:build.")
    if not Path(file).is_file():
        raise InputError(f"model is {place!r}, but there is no file {file}; write it or give the path of another.")
    return file, name


def place_of(function: Any) -> str:
    """Where a user's function or class was written: file and line; "" if it is not a user's.

    >>> place_of(place_of)
    ''
    """
    module = getattr(function, "__module__", "") or ""
    if module.split(".")[0] == "accuacl":
        return ""
    if inspect.isclass(function):
        with contextlib.suppress(OSError, TypeError):  # written where there is no file
            return f"{inspect.getsourcefile(function)}, line {inspect.getsourcelines(function)[1]}"
    code = getattr(inspect.unwrap(getattr(function, "func", function)), "__code__", None)
    if code is None:
        return ""
    return f"{code.co_filename}, line {code.co_firstlineno}"


def with_place(what: str, function: Any) -> str:
    """The name of something for a sentence: with its file and line, if it is a user's.

    >>> with_place("the strategy badge", with_place)
    'the strategy badge'
    """
    location = place_of(function)
    return f"{what} ({location})" if location else what


def module_name(path: Path) -> str:
    """The module name of a file: from its whole path, so that two files with the same name do not collide.

    >>> module_name(Path("a/net.py")) != module_name(Path("b/net.py"))
    True
    """
    return f"{PREFIX}{path.stem}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]}"
