"""Runs in the user's interpreter: stdlib, torch and this package alone. Records what a program executes."""
