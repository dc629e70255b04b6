"""Where the access token is."""

from __future__ import annotations

TOKEN = "LABEL_STUDIO_API_KEY"  # the environment variable
