"""Load tests: many streams, a free event loop, constant memory."""
