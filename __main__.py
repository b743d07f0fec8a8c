"""Serve a model on a rented block of GPUs: the program that `pulumi up` runs.

Nothing is bought here. The stack file names a reservation that exists (`rentblock rent` buys one); the program prepares
everything around it and leaves the group of GPU nodes at size 0, to be raised when the block starts.
"""

from components.program import session_program

session_program()
