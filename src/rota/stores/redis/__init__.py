"""The store in a Redis or Valkey server: one Lua script an operation, so that each is one atomic step.

How jobs lie there, and what moves them, is in `scripts/prelude`.
"""
