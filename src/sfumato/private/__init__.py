"""The private side: everything that touches rows. Only the curator imports from here."""
