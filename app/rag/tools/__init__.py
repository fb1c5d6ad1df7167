"""The tools a model may call in a turn: read, ls, grep, find, search. Each is a plain function of a `Desk`.

They read the database's texts and nothing else: no file is opened, whatever a path says. `app.rag.toolbox` runs them.
"""
