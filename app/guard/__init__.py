"""The loop guard: notices a model that repeats itself, and says what to do about it.

`scan` judges a whole list of messages (the `/v1` path), `turn_guard` the rounds of one turn; both run the same
detectors. Nothing here reads a clock, a setting or the database: callers pass thresholds in and log what comes out.
"""
