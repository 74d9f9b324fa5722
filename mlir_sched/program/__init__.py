"""The program as a whole: its plans and their code, its profile, its measurement and its proof."""
