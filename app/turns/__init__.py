"""A turn as a server task: registry, event log, settling. Knows no frames and no models."""
