"""Parts of transform modules that name no target: whole modules, bases of modules, choices of loops."""
