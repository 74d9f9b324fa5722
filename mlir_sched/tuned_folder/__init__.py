"""The tuned folder that a user gets: its files, their lock, their installation and the result that they show."""
