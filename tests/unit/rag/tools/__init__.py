"""Unit tests of the tools' pure parts."""
