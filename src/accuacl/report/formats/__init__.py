"""A report as a document, and the formats it can be written in."""

FORMATS = {  # with the suffixes of their files, the usual one first
    "html": ("html", "htm"),
    "md": ("md", "markdown"),
    "latex": ("tex",),
    "csv": ("csv",),
}
