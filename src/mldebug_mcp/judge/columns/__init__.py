"""How the columns of a run stand to one another, to guesses, to events and to settings: facts with what is expected."""
