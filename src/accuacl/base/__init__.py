"""What every room may use: errors, files, randomness, progress, and a user's own Python files."""
