"""The verbs of `rentblock`: thin, with no logic of a session in them.

app.py       the verbs; `build_app` takes the function that makes a Target   options.py   flags that several verbs share
display.py   live progress in a terminal, lines elsewhere                    views.py     offers and status, for people
doctor.py    what is installed and what a real session lacks                 failures.py  errors to sentences and codes
confirm.py   the questions before what cannot be undone                      status_shape.py   status, for programs
"""
