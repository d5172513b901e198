"""Where every sample went: facts, segments, the balance, and what crossed a boundary when."""
