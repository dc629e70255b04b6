"""Label Studio as the page on which people label."""
