"""The verbs of `rentblock`: thin, with no logic of a session in them.

app.py       the verbs; `build_app` takes the function that makes a Target
options.py   flags that several verbs share             guards.py        what flags must not leave open
terminal.py  a standard error that may go away          display.py       live progress in it, lines elsewhere
views.py     offers and status, for people              status_shape.py  status, for programs
confirm.py   the questions before what cannot be undone
doctor.py    what is installed and what a real session lacks
failures.py  errors to sentences and codes
"""
