"""One file per format family, run in a limited child process: bytes in, blocks out.

`sniff` finds the true type, `dispatch` picks the family, `child` is the process that runs them, `extractor.Extractor`
is what the rest of Docent calls. The families run in the child only.
"""
