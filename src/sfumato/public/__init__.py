"""The public side: mathematics on released and public values. Nothing here reads a row."""
