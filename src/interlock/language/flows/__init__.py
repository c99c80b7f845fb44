"""Workflows as documents: steps that need one another, read, checked and made a plan."""
