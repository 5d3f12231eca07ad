"""Run many mixed clients: refusals are 503, acknowledged work stays.

They ask, upload, list and delete at once.
"""
