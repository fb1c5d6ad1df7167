"""File to text to chunks, jobs, worker and folders. Knows no ranking and no HTTP."""
