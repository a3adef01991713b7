"""What a person types. One command a file; heavy rooms are imported only when a command needs them."""
