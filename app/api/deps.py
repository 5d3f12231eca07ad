"""What the edge needs from the composition.

`app.bootstrap.Services` is built once per process; routes reach it through the dependency `Composition` and know nothing else
of how things are made. The fields and the calls the routes make on them (all synchronous, thread-safe):

    settings        Settings
    catalog         ports.Catalog, and: fingerprint(library) -> Fingerprint | None, build_state(library) -> str,
                    watermarks() -> Mapping[str, int], original(library, doc_id) -> Path (raises NoOriginal),
                    find(library, name) -> Document (by title or file name, raises NotFound)
    writer          ports.IndexWriter, and: clear(library) -> LibraryCounts, restore(library, doc_id) -> Document,
                    original_path(sha256) -> Path, discard_original(sha256) (a no-op while a document refers to it)
    vectors         ports.VectorIndex
    lexical         ports.LexicalIndex
    jobs            app.jobs.runner.JobRunner, kinds registered by `app.jobs.kinds`
    rag             app.answer.service.RAGService: stream(question, cancel) -> Iterator[AnswerEvent]
    retriever       what `GET /search` asks: search(SearchRequest) -> Retrieval
    answers         ports.AnswerStore
    conversations   ports.ConversationStore
    embedder        ports.Embedder in use
    generator       ports.Generator in use
    ollama          installed models, loaded models, pull with progress, reachability
    arxiv           fetch(arxiv_id) -> RawDocument
    samples         the bundled documents, per library
    boxes           boxes(path, text, start, end) -> page boxes of a span, in PDF points
    status()        what health, readiness and diagnostics show; cheap, no model call
"""
