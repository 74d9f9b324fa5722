"""What is decided above the dispatch: the variants of a program, and how a whole program is measured."""
