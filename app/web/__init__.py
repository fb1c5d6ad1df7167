"""Pages and htmx fragments under /ui. Owns no JSON."""
