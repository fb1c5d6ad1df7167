"""What API and pages share: who is asking, error to HTTP, headers, origin and host checks, body limits. No routes."""
