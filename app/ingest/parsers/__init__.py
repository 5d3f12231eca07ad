"""Parsers: media type to ParsedDocument with offsets, pages, headings."""
