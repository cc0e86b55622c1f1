"""Chat templates: found, run in an environment of Jinja that knows from where each character came, rendered to
texts."""
