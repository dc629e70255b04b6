"""Tables of means over seeds."""
