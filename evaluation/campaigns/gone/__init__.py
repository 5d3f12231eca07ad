"""Check that purged documents are gone: search every file for a planted one."""
