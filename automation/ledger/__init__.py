"""What a session has written down: all that is remembered of it, and where.

request.py  what a user asks for                   folder.py  where a session keeps its files, and who may read them
entries.py  the lines of a journal, by kind        record.py  the value that they fold into
fold.py     the fold (pure)                        journal.py the file; who runs a session
lock.py     one process at a time
"""
