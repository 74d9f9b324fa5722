"""Design spaces: what transform modules make of one dispatch, its features, and modules that users load."""
