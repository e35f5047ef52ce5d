"""The public side: mathematics on released and public values. Nothing here touches a row."""
