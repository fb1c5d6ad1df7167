"""The database: engine, models, one repository module per aggregate. Knows no HTTP, no search ranking, no files."""
