"""What a user gets: the files of a tuned folder, their lock, their installation and the result that they show."""
