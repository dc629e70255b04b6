"""The page on which people label. Needs the extra `web`; nothing else in the package imports it but `project serve`."""
