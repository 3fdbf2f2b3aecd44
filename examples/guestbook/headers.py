"""Headers that have browsers do what the guestbook needs and nothing else."""

from __future__ import annotations

from flask import Flask, Response, request

POLICY = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
"""No scripts at all, and styles from our own file alone."""


def secure_headers(web: Flask, *, https: bool) -> None:
    @web.after_request
    def add(response: Response) -> Response:
        headers = response.headers
        headers.setdefault("Content-Security-Policy", POLICY)
        headers["X-Content-Type-Options"] = "nosniff"
        headers["Referrer-Policy"] = "same-origin"  # the links in letters are addresses of pages
        headers["Cross-Origin-Opener-Policy"] = "same-origin"
        if request.endpoint != "static":
            headers["Cache-Control"] = "no-store"  # pages show who is signed in
        if https:
            headers["Strict-Transport-Security"] = "max-age=31536000"
        return response
