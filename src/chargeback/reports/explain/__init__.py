"""Why a row is as it is: its explanation, in full, as a sentence, and for callers who see some rows only."""
