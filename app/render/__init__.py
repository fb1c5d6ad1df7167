"""Text to safe HTML. The only place that makes HTML from what a user or model wrote."""
