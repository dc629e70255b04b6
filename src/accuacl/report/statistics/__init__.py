"""What runs came to: groups over seeds, gains, tests of significance, and the figures of the paper."""
