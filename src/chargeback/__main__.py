"""``python -m chargeback`` is the same as the command ``chargeback``."""

from chargeback.cli.main import main

if __name__ == "__main__":
    main()
