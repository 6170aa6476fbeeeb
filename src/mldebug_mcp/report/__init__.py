"""Answers → text for people and short forms for agents; a module for each kind of answer."""
