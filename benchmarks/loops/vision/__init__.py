"""Tiny runs that are really trained, each with one planted fault or none, logged as practitioners log."""
