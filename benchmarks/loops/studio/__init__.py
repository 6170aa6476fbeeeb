"""Small trainings of images, points, sequences, tables and systems, with their faults, written in many styles."""
