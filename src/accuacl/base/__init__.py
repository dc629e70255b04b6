"""What every package may use: errors, files, randomness, progress, threads, databases, users' own Python files."""
