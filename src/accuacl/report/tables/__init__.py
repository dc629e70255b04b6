"""Tables of means over seeds, of differences, and of agreement with the paper."""
