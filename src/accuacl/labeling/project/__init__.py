"""A project: settings, tasks, inputs, learning, estimates, export."""
