"""Reports: each has its request, its result and its calculation, without HTTP and without a terminal."""
