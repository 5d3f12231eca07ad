"""Choose what runs the jobs: this process alone, or several on one database."""

from __future__ import annotations

from contextlib import ExitStack

from app.bootstrap.foundation import Foundation
from app.index.queue.opening import open_shared_jobs
from app.jobs.local_runner import LocalRunner
from app.jobs.runner import JobRunner
from app.jobs.shared_runner import SharedRunner


def open_runner(base: Foundation, stack: ExitStack) -> JobRunner:
    """Return the runner of the settings; `stack` closes its connections.

    Raises:
        InvalidInput: A process that is alone would leave lanes without work.
    """
    options, store = base.settings.jobs(), base.store.jobs
    if not base.settings.is_shared:
        return LocalRunner(store, options, spans=base.spans)
    shared = stack.enter_context(open_shared_jobs(base.settings.database_url))
    return SharedRunner(shared, store, options, spans=base.spans)
