"""A report as a document, and the formats it can be written in."""
