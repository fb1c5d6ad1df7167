"""One file per format family, run in a limited child process: bytes in, blocks out.

`blocks` is the vocabulary, `sniff` finds the true type, `dispatch` picks the family, `child` is the process that runs
them, `extractor.Extractor` is what the rest of Docent calls. Nothing but `extractor` runs in the app's own process.
"""
