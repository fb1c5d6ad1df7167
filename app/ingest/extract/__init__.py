"""One file per format family, run in a limited child process: bytes in, blocks out.

`sniff` finds the true type, `dispatch` picks the family, `child` is the process that runs them, `extractor.Extractor`
is what the rest of Docent calls. Nothing but `extractor` opens a stranger's file for reading in the app's name.
"""
