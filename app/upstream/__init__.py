"""The configured model server: client, probe, discovery. Owns no meaning of replies."""
