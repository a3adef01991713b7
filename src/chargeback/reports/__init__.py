"""Reports: each is its question, its answer and its arithmetic, without HTTP and without a terminal."""
