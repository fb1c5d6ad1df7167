"""One file per format family, run in a limited child process: bytes in, blocks out."""
