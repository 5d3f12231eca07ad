"""Name what the work on a whole store touches."""

from __future__ import annotations

from dataclasses import dataclass

from app.storage.catalog.database import Database
from app.storage.catalog.documents import Catalog
from app.storage.catalog.loader import CatalogLoader
from app.storage.catalog.passage_codes import PassageCodeStore
from app.storage.catalog.uploads import Unlinks
from app.storage.catalog.vectors import Builds
from app.storage.files.durable import Steps
from app.storage.files.originals import Originals
from app.storage.options import IndexOptions
from app.storage.projector import Projector
from app.storage.vectors.supervisor import StoreSupervisor
from app.storage.writer import CatalogIndexWriter


@dataclass(frozen=True)
class Parts:
    """The open parts of a store; what works on all of it has them as its own fields."""

    options: IndexOptions
    steps: Steps
    database: Database
    originals: Originals
    unlinks: Unlinks
    loader: CatalogLoader
    catalog: Catalog
    codes: PassageCodeStore
    builds: Builds
    projector: Projector
    writer: CatalogIndexWriter
    supervisor: StoreSupervisor
