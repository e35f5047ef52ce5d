"""What the methods share."""
