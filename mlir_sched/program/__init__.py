"""The program as a whole: its variants, its profile and its measurement."""
