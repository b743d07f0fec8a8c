"""What every test can count on."""

import signal

# A run in the background of a script begins with Ctrl-C ignored, and its children would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
