"""Pages that are made from data and from code; a test says that they are current."""
