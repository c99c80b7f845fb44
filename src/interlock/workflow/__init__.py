"""Workflows: activities that survive crashes, waits, and compensation, on the engine."""
