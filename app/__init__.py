"""Docent: ask your own documents and get cited answers, on your own machine."""

__version__ = "0.1.0"
