"""Documents made for these tests."""

from __future__ import annotations

import io

from PIL import Image
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate, Spacer

LIGHTHOUSE_PAGES = (
    (
        "The Lighthouse of Morvane",
        "The lighthouse of Morvane stands on a basalt cliff at the western end of the island.",
        "It was designed by the engineer Ilse Tarrow and finished in the autumn of 1874.",
        "The tower is forty-one metres high and was built from granite that came by barge.",
    ),
    (
        "The Lamp",
        "The first lamp burned rapeseed oil and could be seen from nineteen nautical miles.",
        "A mercury bath carried the great lens, so that one keeper could turn it with a finger.",
        "Electric light replaced the oil lamp in 1931 after two winters of trials.",
    ),
    (
        "The Keepers",
        "Three keepers lived in the tower and shared a watch of eight hours each.",
        "Their logbook records one hundred and twelve rescued sailors between 1880 and 1920.",
        "The last keeper, Bram Oduya, left the lighthouse when it was automated in 1988.",
    ),
)
ENGINEER = "Who designed the lighthouse of Morvane?"
LENS = "What carried the great lens of the lamp?"

ORCHARD = """# The Orchard Notes

The \U0001f34e orchard of Quillane grows \U0001f350 sixty kinds of pears \U0001f468\u200d\U0001f33e on terraces above the river.
Its oldest tree \U0001f333 was planted by the gardener Anselm Rook in 1702. \U0001f389

## Harvest

The harvest \U0001f9fa begins in September and needs forty pickers for three weeks.
"""
PEARS = "How many kinds of pears does the orchard of Quillane grow?"
PICKERS = "When do the pickers get paid?"
"""What no document says."""

OBSERVATORY = """# The Observatory of Tal Venn

The observatory of Tal Venn houses a refracting telescope of ninety centimetres.
Its dome was designed by the architect Ruth Calloway and opened in 1911.
"""


def lighthouse_pdf() -> bytes:
    """Three pages, each with a heading and three sentences."""
    out = io.BytesIO()
    styles = getSampleStyleSheet()
    story: list[object] = []
    for heading, *sentences in LIGHTHOUSE_PAGES:
        story += [Paragraph(heading, styles["Heading1"]), Spacer(1, 12)]
        story += [Paragraph(" ".join(sentences), styles["BodyText"]), PageBreak()]
    document = SimpleDocTemplate(
        out, pagesize=A4, title="The Lighthouse of Morvane", author="Nora Finch"
    )
    document.build(story)
    return out.getvalue()


def half_scanned_pdf() -> bytes:
    """A page of text and one that is a picture."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4)
    for line, words in enumerate(LIGHTHOUSE_PAGES[0]):
        canvas.drawString(72, 700 - 20 * line, words)
    canvas.showPage()
    canvas.drawImage(ImageReader(Image.new("L", (60, 80), 180)), 0, 0, *A4)
    canvas.save()
    return out.getvalue()
