"""JSON and server-sent events under /api, and health. Owns no HTML."""
