"""Where the trained token vectors are."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def files() -> tuple[Path, Path] | None:
    """The vectors and the tokenizer, if the extra `texts` is installed."""
    package = find_spec("wordllama")
    if package is None or package.origin is None or find_spec("tokenizers") is None:
        return None
    folder = Path(package.origin).parent
    found = (
        folder / "weights" / "l2_supercat_256.safetensors",
        folder / "tokenizers" / "l2_supercat_tokenizer_config.json",
    )
    return found if all(path.is_file() for path in found) else None
