"""Full text, vectors, fusion and embedders. Owns no use of hits."""
