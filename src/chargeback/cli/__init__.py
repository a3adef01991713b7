"""The command line. One command per file; heavy packages are imported only when a command needs them."""
