"""The served model: how it starts, how it is reached, and whether it does what was promised.

cluster.py     the session's Kubernetes API, read through kr8s: one loop in one thread, a time limit on everything
facts.py       what instances, nodes, pods and logs show at one instant: only the fields that the watch reads
startup.py     StartupView: the first unfinished start-up phase, what is waited for, whether it is late
client.py      connect(): a base URL on 127.0.0.1 that reaches the served model through a port-forward
acceptance.py  the checks that prove the endpoint, with the openai client
questions.py   what the checks ask, and which answers are coherent; answer_shapes.py: what they read of an answer
"""
