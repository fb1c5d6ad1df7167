"""The loop guard."""
