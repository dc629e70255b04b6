"""Replay buffers: immutable values, and pure functions that offer examples to them."""

from accuacl.memory.buffer import Memory, append_scored, class_balanced, quotas, replace_scored, reservoir

__all__ = ["Memory", "append_scored", "class_balanced", "quotas", "replace_scored", "reservoir"]
