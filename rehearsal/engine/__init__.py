"""What Pulumi's engine does in a world, seen from outside: when an operation runs, what it changed, how long it took.

operations.py     engines that run, and the jump of virtual time after an operation
critical_path.py  the length of an operation, from the dependencies in the stack's state
"""
