"""Hybrid search."""

from app.search.hits import Hit, SearchFilters

__all__ = ["Hit", "SearchFilters"]
