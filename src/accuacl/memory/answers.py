"""What a memory policy keeps, checked: a user's is held to the rules with a sentence that names file and line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from accuacl.base.errors import InputError
from accuacl.base.userfile import with_place
from accuacl.memory.buffer import Ids, Memory


def check_kept(name: str, policy: Callable[..., Any], kept: Any, memory: Memory, ids: Ids, capacity: int) -> Memory:
    """The policy's answer, if it is a memory with examples that it was offered, each once and not too many."""
    who = with_place(f"the memory policy {name}", policy)
    if not isinstance(kept, Memory):
        raise InputError(f"{who} gave a {type(kept).__name__}; return a Memory, such as Memory(ids, labels).")
    if len(kept) > capacity:
        raise InputError(f"{who} kept {len(kept)} examples; keep at most `capacity` of them, here {capacity}.")
    if len(np.unique(kept.ids)) < len(kept):
        raise InputError(f"{who} kept an example twice; keep different ones.")
    strange = np.setdiff1d(kept.ids, np.concatenate([memory.ids, ids]))
    if len(strange):
        raise InputError(f"{who} kept the id {strange[0]}; keep ids of the memory or of those offered.")
    return kept
