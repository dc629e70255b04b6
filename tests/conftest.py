"""For all tests."""

import signal

import hypothesis

hypothesis.settings.register_profile("steady", deadline=None)  # a busy machine is no fault
hypothesis.settings.load_profile("steady")

# A shell that starts a job in the background has it ignore Ctrl-C, and all that it starts; tests send Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["old"]  # runs and projects of the version before, with files of their users
