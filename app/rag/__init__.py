"""Answering: what is searched, what the model is given, what it says, what of it is kept. Knows no HTTP."""
