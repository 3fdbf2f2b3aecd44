"""A guestbook: people sign up, confirm their address and write, and no request waits for the mail server.

`python -m examples.guestbook` serves it, with a worker beside the server that sends the mail.
"""
