"""What a schedule knows of the code that its verbs have made: the ops, their loop nests and their handles."""
