"""Expressions over declared fields: read, type-checked, evaluated by CEL."""
