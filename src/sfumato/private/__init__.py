"""The private side: what touches rows. Only the curator imports from here."""
