BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0014');
CREATE TABLE answer_documents (
	answer INTEGER NOT NULL, 
	library TEXT NOT NULL, 
	doc_id TEXT NOT NULL, 
	PRIMARY KEY (answer, library, doc_id), 
	FOREIGN KEY(answer) REFERENCES answers (n) ON DELETE CASCADE
);
CREATE TABLE answers (
	n INTEGER NOT NULL, 
	answer_id TEXT NOT NULL, 
	record TEXT NOT NULL, 
	feedback TEXT, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (answer_id)
);
INSERT INTO "answers" VALUES(1,'kept','{"answer_id": "kept", "answer": "Zürich", "at": "2026-11-26T07:00:00Z"}','{"thumb": "up"}','2026-11-26T07:00:00Z');
CREATE TABLE builds (
	build INTEGER NOT NULL, 
	library TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	fingerprint8 TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (build)
);
INSERT INTO "builds" VALUES(1,'papers','{"analyzer": "analyzer-1", "chunker": "chunker-1", "dimension": 16, "embedding_model": "test-model", "model_digest": "digest", "passage_prefix": "", "query_prefix": ""}','9def05f6','2026-11-29T01:18:41.211Z');
INSERT INTO "builds" VALUES(2,'public','{"analyzer": "analyzer-1", "chunker": "chunker-1", "dimension": 16, "embedding_model": "test-model", "model_digest": "digest", "passage_prefix": "", "query_prefix": ""}','9def05f6','2026-11-29T01:18:41.260Z');
CREATE TABLE changes (
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	library TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	doc INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	ids BLOB
);
INSERT INTO "changes" VALUES(2,'papers','write',1,2,X'01000000000000000200000000000000');
INSERT INTO "changes" VALUES(4,'papers','write',2,2,X'05000000000000000600000000000000');
INSERT INTO "changes" VALUES(6,'papers','vectors',0,0,X'0300000000000000040000000000000007000000000000000800000000000000');
INSERT INTO "changes" VALUES(7,'public','vectors',0,0,X'09000000000000000A00000000000000');
INSERT INTO "changes" VALUES(9,'papers','remove',4,1,X'0B000000000000000C00000000000000');
CREATE TABLE chunks (
	chunk_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	doc INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	start INTEGER NOT NULL, 
	"end" INTEGER NOT NULL, 
	section TEXT NOT NULL, 
	page INTEGER, 
	FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
);
INSERT INTO "chunks" VALUES(1,1,1,0,0,9,'body',1);
INSERT INTO "chunks" VALUES(2,1,1,1,9,18,'body',1);
INSERT INTO "chunks" VALUES(3,1,2,0,0,14,'body',1);
INSERT INTO "chunks" VALUES(4,1,2,1,14,29,'body',1);
INSERT INTO "chunks" VALUES(5,2,1,0,0,9,'body',1);
INSERT INTO "chunks" VALUES(6,2,1,1,9,18,'body',1);
INSERT INTO "chunks" VALUES(7,2,2,0,0,15,'body',1);
INSERT INTO "chunks" VALUES(8,2,2,1,15,30,'body',1);
INSERT INTO "chunks" VALUES(9,3,1,0,0,10,'body',1);
INSERT INTO "chunks" VALUES(10,3,1,1,10,20,'body',1);
CREATE TABLE conversations (
	n INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	title TEXT NOT NULL, 
	library TEXT, 
	summary TEXT NOT NULL, 
	folded INTEGER NOT NULL, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	forget_at TEXT, 
	tip TEXT, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "conversations" VALUES(1,'a4f1da97d0c44902a50f3e6ed85d24c0','A talk','papers','',0,'2026-11-29T01:18:41.341Z','2026-11-29T01:18:41.342Z',NULL,'kept');
CREATE TABLE deletions (
	library TEXT NOT NULL, 
	source_key TEXT NOT NULL, 
	upto INTEGER NOT NULL, 
	PRIMARY KEY (library, source_key)
)
 WITHOUT ROWID

;
CREATE TABLE documents (
	doc INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	library TEXT NOT NULL, 
	doc_id TEXT NOT NULL, 
	source_key TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	filename TEXT NOT NULL, 
	type TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	title TEXT NOT NULL, 
	authors TEXT NOT NULL, 
	author_keys TEXT NOT NULL, 
	year INTEGER, 
	arxiv_id TEXT, 
	source_url TEXT, 
	licence TEXT, 
	flags TEXT NOT NULL, 
	has_original INTEGER NOT NULL, 
	characters INTEGER NOT NULL, 
	pages INTEGER NOT NULL, 
	bytes INTEGER NOT NULL, 
	chunks INTEGER NOT NULL, 
	embedded INTEGER NOT NULL, 
	duplicate_of TEXT, 
	source_revision TEXT, 
	corrected INTEGER NOT NULL, 
	links INTEGER NOT NULL, 
	search_key TEXT NOT NULL, 
	added_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	purge_at TEXT, 
	language TEXT DEFAULT '' NOT NULL, 
	other_titles TEXT DEFAULT '' NOT NULL, 
	tags TEXT DEFAULT '[]' NOT NULL, 
	metadata TEXT DEFAULT '{}' NOT NULL, 
	accepted INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT uq_documents_doc_id UNIQUE (library, doc_id), 
	CONSTRAINT uq_documents_source_key UNIQUE (library, source_key)
);
INSERT INTO "documents" VALUES(1,'papers','171b21fb571555e6','a.txt',2,'live','a.txt','text','c5f2954f2cd71345db67dc41806102e380bfcbc911a7e05ad50dd5546c1f4cb8','Title of a.txt','["Ann", "Bo"]','ann
bo',2021,NULL,NULL,NULL,'[]',1,29,1,29,2,2,NULL,NULL,0,0,'title of a.txt
a.txt','2026-11-29T01:18:40.539Z','2026-11-29T01:18:40.622Z',NULL,'','','["Sea"]','{"rating": 5, "due": "2026-02-01", "project": "Apollo"}',0);
INSERT INTO "documents" VALUES(2,'papers','9413343236653f3d','b.txt',2,'live','b.txt','text','22c929fc89b567eb065dc2ecbcc316ab11ec1a2cc49a9380a1f979331175ee3c','Title of b.txt','["Ann", "Bo"]','ann
bo',2021,NULL,NULL,NULL,'[]',1,30,1,30,2,2,NULL,NULL,0,0,'title of b.txt
b.txt','2026-11-29T01:18:40.794Z','2026-11-29T01:18:40.923Z',NULL,'','','["Sea"]','{"rating": 5, "due": "2026-02-01", "project": "Apollo"}',0);
INSERT INTO "documents" VALUES(3,'public','60d022a1088ae026','wiki:7',1,'live','wiki:7','text','f356d18a1e583bfb8a5f4e72a2788bb4c4c1d6aeb52b0744ee0a54146c257860','Title of wiki:7','[]','',NULL,NULL,NULL,NULL,'[]',0,20,1,20,2,2,NULL,NULL,0,0,'title of wiki:7
wiki:7','2026-11-29T01:18:41.150Z','2026-11-29T01:18:41.150Z',NULL,'','','[]','{}',0);
CREATE TABLE jobs (
	n INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	state TEXT NOT NULL, 
	done INTEGER NOT NULL, 
	total INTEGER, 
	unit TEXT NOT NULL, 
	eta_s FLOAT, 
	errors TEXT NOT NULL, 
	files TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	result TEXT, 
	created_at TEXT NOT NULL, 
	updated_at TEXT NOT NULL, 
	mark TEXT DEFAULT '' NOT NULL, 
	worker TEXT, 
	heard_at FLOAT, 
	stop TEXT, 
	not_before FLOAT, 
	attempts INTEGER DEFAULT '0' NOT NULL, 
	PRIMARY KEY (n), 
	UNIQUE (id)
);
INSERT INTO "jobs" VALUES(1,'8e3d0f91c58a4a899772b38079525eb5','ingest','queued',0,3,'chunks',NULL,'[]','[]','{"files": ["a"]}',NULL,'2026-11-29T01:18:41.334Z','2026-11-29T01:18:41.334Z','',NULL,NULL,NULL,NULL,0);
CREATE TABLE keys (
	name TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	scopes TEXT NOT NULL, 
	libraries TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	used_at TEXT, 
	PRIMARY KEY (name), 
	UNIQUE (digest)
);
CREATE TABLE labels (
	doc INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	library TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	number FLOAT, 
	PRIMARY KEY (doc, "key", value), 
	FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
);
INSERT INTO "labels" VALUES(1,'','sea','papers','tag',NULL);
INSERT INTO "labels" VALUES(1,'rating','5','papers','number',5.0);
INSERT INTO "labels" VALUES(1,'due','2026-02-01','papers','date',739648.0);
INSERT INTO "labels" VALUES(1,'project','apollo','papers','text',NULL);
INSERT INTO "labels" VALUES(2,'','sea','papers','tag',NULL);
INSERT INTO "labels" VALUES(2,'rating','5','papers','number',5.0);
INSERT INTO "labels" VALUES(2,'due','2026-02-01','papers','date',739648.0);
INSERT INTO "labels" VALUES(2,'project','apollo','papers','text',NULL);
CREATE TABLE ledger (
	library TEXT NOT NULL, 
	source TEXT NOT NULL, 
	article TEXT NOT NULL, 
	revision TEXT, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (library, source, article)
)
 WITHOUT ROWID

;
CREATE TABLE libraries (
	library TEXT NOT NULL, 
	documents INTEGER NOT NULL, 
	chunks INTEGER NOT NULL, 
	embedded INTEGER NOT NULL, 
	bytes INTEGER NOT NULL, 
	live_build INTEGER, 
	previous_build INTEGER, 
	PRIMARY KEY (library)
);
INSERT INTO "libraries" VALUES('papers',2,4,4,59,1,NULL);
INSERT INTO "libraries" VALUES('public',1,2,2,20,2,NULL);
CREATE TABLE meta (
	"key" TEXT NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('codes_version','minilm-128-1');
INSERT INTO "meta" VALUES('labels_version','a564668aee4a42e18fc7427eb6ad6f80');
INSERT INTO "meta" VALUES('deleted_since_purge/papers','2026-11-29T01:18:41.306Z');
CREATE TABLE model_speeds (
	host TEXT NOT NULL, 
	model TEXT NOT NULL, 
	reading FLOAT NOT NULL, 
	writing FLOAT, 
	updated_at TEXT NOT NULL, 
	PRIMARY KEY (host, model)
);
CREATE TABLE model_tests (
	digest TEXT NOT NULL, 
	model TEXT NOT NULL, 
	findings TEXT NOT NULL, 
	at TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE TABLE page_words (
	sha256 TEXT NOT NULL, 
	page INTEGER NOT NULL, 
	words BLOB NOT NULL, 
	PRIMARY KEY (sha256, page)
);
CREATE TABLE passage_codes (
	chunk_id INTEGER NOT NULL, 
	sentences BLOB NOT NULL, 
	tokens BLOB NOT NULL, 
	PRIMARY KEY (chunk_id), 
	FOREIGN KEY(chunk_id) REFERENCES chunks (chunk_id) ON DELETE CASCADE
);
CREATE TABLE revisions (
	rev INTEGER NOT NULL, 
	doc INTEGER NOT NULL, 
	revision INTEGER NOT NULL, 
	sha256 TEXT NOT NULL, 
	source_revision TEXT, 
	has_original INTEGER NOT NULL, 
	characters INTEGER NOT NULL, 
	pages TEXT NOT NULL, 
	text BLOB NOT NULL, 
	created_at TEXT NOT NULL, 
	outline TEXT, 
	corrections TEXT, 
	PRIMARY KEY (rev), 
	CONSTRAINT uq_revisions_revision UNIQUE (doc, revision), 
	FOREIGN KEY(doc) REFERENCES documents (doc) ON DELETE CASCADE
);
INSERT INTO "revisions" VALUES(1,1,1,'6aee0052d169039e934f9db67aca570f48af5aaec2bfd1b728266658eabb64f3',NULL,0,18,'[[1,0,18]]',X'28B52FFD2412910000416E206F6C646572207265766973696F6E2E1B32A0C6','2026-11-29T01:18:40.539Z',NULL,NULL);
INSERT INTO "revisions" VALUES(2,1,2,'c5f2954f2cd71345db67dc41806102e380bfcbc911a7e05ad50dd5546c1f4cb8',NULL,1,29,'[[1,0,29]]',X'28B52FFD241DE9000057616C72757365732077686973746C6520696E207468652077696E642E59337A08','2026-11-29T01:18:40.622Z','[0,8,1]',NULL);
INSERT INTO "revisions" VALUES(3,2,1,'6aee0052d169039e934f9db67aca570f48af5aaec2bfd1b728266658eabb64f3',NULL,0,18,'[[1,0,18]]',X'28B52FFD2412910000416E206F6C646572207265766973696F6E2E1B32A0C6','2026-11-29T01:18:40.794Z',NULL,NULL);
INSERT INTO "revisions" VALUES(4,2,2,'22c929fc89b567eb065dc2ecbcc316ab11ec1a2cc49a9380a1f979331175ee3c',NULL,1,30,'[[1,0,30]]',X'28B52FFD241EF1000050656E6775696E732070617261646520706173742074686520706F6C652E3F40A946','2026-11-29T01:18:40.923Z','[0,8,1]',NULL);
INSERT INTO "revisions" VALUES(5,3,1,'f356d18a1e583bfb8a5f4e72a2788bb4c4c1d6aeb52b0744ee0a54146c257860',NULL,0,20,'[[1,0,20]]',X'28B52FFD2414A100004C696F6E7320736C656570206174206E6F6F6E2EDEE35FF1','2026-11-29T01:18:41.150Z',NULL,NULL);
CREATE TABLE shares (
	id TEXT NOT NULL, 
	digest TEXT NOT NULL, 
	answer_id TEXT NOT NULL, 
	record TEXT NOT NULL, 
	created_at TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (digest)
);
CREATE TABLE sync_claims (
	library TEXT NOT NULL, 
	source_key TEXT NOT NULL, 
	folder TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	PRIMARY KEY (library, source_key)
)
 WITHOUT ROWID

;
CREATE TABLE turn_documents (
	turn INTEGER NOT NULL, 
	library TEXT NOT NULL, 
	doc_id TEXT NOT NULL, 
	PRIMARY KEY (turn, library, doc_id), 
	FOREIGN KEY(turn) REFERENCES turns (n) ON DELETE CASCADE
);
CREATE TABLE turns (
	n INTEGER NOT NULL, 
	conversation INTEGER NOT NULL, 
	role TEXT NOT NULL, 
	content TEXT NOT NULL, 
	answer_id TEXT, 
	at TEXT NOT NULL, 
	parent TEXT, 
	PRIMARY KEY (n), 
	FOREIGN KEY(conversation) REFERENCES conversations (n) ON DELETE CASCADE
);
INSERT INTO "turns" VALUES(1,1,'user','Who whistles?','kept','2026-11-29T01:18:41.343Z','');
INSERT INTO "turns" VALUES(2,1,'assistant','Walruses. [1]','kept','2026-11-29T01:18:41.344Z','');
CREATE TABLE type_counts (
	library TEXT NOT NULL, 
	type TEXT NOT NULL, 
	documents INTEGER NOT NULL, 
	PRIMARY KEY (library, type)
);
INSERT INTO "type_counts" VALUES('papers','text',2);
INSERT INTO "type_counts" VALUES('public','text',1);
CREATE TABLE unlinks (
	sha256 TEXT NOT NULL, 
	recorded_at TEXT NOT NULL, 
	PRIMARY KEY (sha256)
);
INSERT INTO "unlinks" VALUES('c5f2954f2cd71345db67dc41806102e380bfcbc911a7e05ad50dd5546c1f4cb8','2026-11-29T01:18:40.537Z');
INSERT INTO "unlinks" VALUES('22c929fc89b567eb065dc2ecbcc316ab11ec1a2cc49a9380a1f979331175ee3c','2026-11-29T01:18:40.786Z');
CREATE TABLE vectors (
	"key" INTEGER NOT NULL, 
	vector BLOB NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "vectors" VALUES(1099511627779,X'61289AA894314F27AAB04D2EAE35203421B283B56EB1C22110B99FAB6DB561B2');
INSERT INTO "vectors" VALUES(1099511627780,X'4CB252AFC3300836F3A9E737B2B311303A355A284DB455B54CB1182DD7B5D7AC');
INSERT INTO "vectors" VALUES(1099511627783,X'10A94C30D32AA62D32B11FA83B32EF3501B5043659353532342CFDACCB35CA37');
INSERT INTO "vectors" VALUES(1099511627784,X'2C373C35B12DD0B48A943A3121B54B2ED92E8B31B7B445B1F3AEA8B4ED36E6AF');
INSERT INTO "vectors" VALUES(2199023255561,X'61289AA894314F27AAB04D2EAE35203421B283B56EB1C22110B99FAB6DB561B2');
INSERT INTO "vectors" VALUES(2199023255562,X'4CB252AFC3300836F3A9E737B2B311303A355A284DB455B54CB1182DD7B5D7AC');
CREATE TABLE watermarks (
	library TEXT NOT NULL, 
	projection TEXT NOT NULL, 
	seq INTEGER NOT NULL, 
	PRIMARY KEY (library, projection)
);
INSERT INTO "watermarks" VALUES('papers','lexical',9);
INSERT INTO "watermarks" VALUES('public','lexical',5);
CREATE INDEX ix_documents_linked ON documents (library, links) WHERE state = 'live' AND embedded < chunks;
CREATE INDEX ix_documents_pending ON documents (library, doc) WHERE state = 'live' AND embedded < chunks;
CREATE INDEX ix_documents_longest ON documents (library, characters) WHERE state = 'live' AND embedded < chunks;
CREATE INDEX ix_documents_sha256 ON documents (library, sha256);
CREATE INDEX ix_documents_purge ON documents (purge_at) WHERE purge_at IS NOT NULL;
CREATE INDEX ix_changes_library ON changes (library, seq);
CREATE INDEX ix_jobs_worker ON jobs (worker);
CREATE UNIQUE INDEX ux_jobs_mark ON jobs (mark) WHERE state = 'running' AND mark <> '';
CREATE INDEX ix_jobs_state ON jobs (state, n);
CREATE INDEX ix_answers_created_at ON answers (created_at);
CREATE INDEX ix_ledger_state ON ledger (library, source, state, reason);
CREATE INDEX ix_sync_claims_folder ON sync_claims (library, folder);
CREATE INDEX ix_labels_number ON labels ("key", library, number, doc) WHERE number IS NOT NULL;
CREATE INDEX ix_labels_value ON labels ("key", value, library, doc);
CREATE INDEX ix_revisions_original ON revisions (sha256) WHERE has_original = 1;
CREATE INDEX ix_chunks_doc ON chunks (doc, revision, ordinal);
CREATE INDEX ix_turns_answer ON turns (answer_id);
CREATE INDEX ix_turns_conversation ON turns (conversation, n);
CREATE INDEX ix_answer_documents_doc ON answer_documents (library, doc_id);
CREATE INDEX ix_turn_documents_doc ON turn_documents (library, doc_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('documents',4);
INSERT INTO "sqlite_sequence" VALUES('changes',9);
INSERT INTO "sqlite_sequence" VALUES('chunks',12);
COMMIT;
