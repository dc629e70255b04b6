"""A report as a document, and the formats it can be written in."""

FORMATS = {"html": "html", "md": "md", "latex": "tex", "csv": "csv"}  # with the suffix of their files
