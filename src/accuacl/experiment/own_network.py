"""A user's own network, `--model net.py:build`, as settings: where it is, and a hash of its file."""

from __future__ import annotations

import hashlib
from pathlib import Path

from accuacl.base.errors import InputError
from accuacl.base.files import reading
from accuacl.base.userfile import check_function


def own_model(place: str, digest: str | None) -> dict[str, str]:
    """`model` with an absolute path, and `model_digest`, which must be `digest` if that is given."""
    file, name = check_function(place)
    path = Path(file).resolve()
    with reading(path):
        now = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest is not None and digest != now:
        raise InputError(f"{path} has changed since it was recorded; restore it, or start over with --fresh.")
    return {"model": f"{path}:{name}", "model_digest": now}
