-- A store as schema version 1 wrote it. Never changed: it proves that old stores can be read.
BEGIN TRANSACTION;
CREATE TABLE mlir_sched_schema (
	version INTEGER NOT NULL
);
INSERT INTO "mlir_sched_schema" VALUES(1);
CREATE TABLE models (
	"key" VARCHAR(255) NOT NULL, 
	data BLOB NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "models" VALUES('model',X'0001','2026-11-21T12:29:10.245210+00:00');
CREATE TABLE records (
	id INTEGER NOT NULL, 
	task_key VARCHAR(255) NOT NULL, 
	context_key VARCHAR(255) NOT NULL, 
	candidate_key VARCHAR(255) NOT NULL, 
	origin TEXT NOT NULL, 
	median_s FLOAT, 
	ratio FLOAT, 
	failure TEXT, 
	failure_message TEXT, 
	timing TEXT, 
	binary_hash TEXT NOT NULL, 
	batch INTEGER NOT NULL, 
	seed BIGINT NOT NULL, 
	compiler TEXT NOT NULL, 
	tool TEXT NOT NULL, 
	created TEXT NOT NULL, 
	flags TEXT NOT NULL, 
	trace TEXT, 
	script TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (task_key, context_key, candidate_key), 
	FOREIGN KEY(task_key) REFERENCES tasks ("key")
);
INSERT INTO "records" VALUES(1,'task','threads=1','c0','untuned',0.0005,1.0,NULL,NULL,'{"median_s": 0.0005, "low_s": 0.0004997501249375312, "high_s": 0.0005002501250625312, "samples": 24, "ratio": 1.0, "ratio_low": 0.99, "ratio_high": 1.01, "disturbed": 0}','0000000000000000000000000000000000000000000000000000000000000000',0,7,'3.13.0','0.1.0','2026-01-02T03:04:05.678901+00:00','["--iree-opt-level=O3"]',NULL,'');
INSERT INTO "records" VALUES(2,'task','threads=1','c1','script',3.33333333333333322202e-04,1.33333333333333325931e+00,NULL,NULL,'{"median_s": 0.0003333333333333333, "low_s": 0.0003332222592469177, "high_s": 0.00033344448149383126, "samples": 24, "ratio": 1.3333333333333333, "ratio_low": 1.25, "ratio_high": 1.5, "disturbed": 2}','1111111111111111111111111111111111111111111111111111111111111111',0,7,'3.13.0','0.1.0','2026-01-02T03:04:05.678901+00:00','[]','{"sketch": "contraction", "decisions": [{"name": "tile", "value": [32, 8], "distribution": {"kind": "perfect_tile", "extent": 64, "levels": 2}}, {"name": "order", "value": ["j", "i"], "distribution": {"kind": "permutation", "items": ["i", "j"]}}]}','module {
}
');
INSERT INTO "records" VALUES(3,'task','threads=1','c2','script',NULL,NULL,'compile_error','error: it''s
broken',NULL,'',1,7,'3.13.0','0.1.0','2026-01-02T03:04:05.678901+00:00','[]','{"sketch": "contraction", "decisions": [{"name": "tile", "value": [64, 64], "distribution": {"kind": "perfect_tile", "extent": 64, "levels": 2}}, {"name": "order", "value": ["j", "i"], "distribution": {"kind": "permutation", "items": ["i", "j"]}}]}','module {
}
');
CREATE TABLE rounds (
	run_key VARCHAR(255) NOT NULL, 
	round INTEGER NOT NULL, 
	data TEXT NOT NULL, 
	PRIMARY KEY (run_key, round), 
	FOREIGN KEY(run_key) REFERENCES runs ("key")
);
INSERT INTO "rounds" VALUES('run',0,'{"chosen": ["c1", "c2"]}');
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	settings TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "runs" VALUES(1,'run','{"seed": 7}','2026-11-21T12:29:10.233381+00:00');
CREATE TABLE tasks (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	name TEXT NOT NULL, 
	description TEXT NOT NULL, 
	target_key VARCHAR(255) NOT NULL, 
	target_description TEXT NOT NULL, 
	compiler TEXT NOT NULL, 
	flags TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "tasks" VALUES(1,'task','main_dispatch_0_matmul_64x64x64_f32','linalg.fill 64x64; linalg.matmul 64x64x64','target','#hal.executable.target<...>','3.13.0','["--iree-hal-target-device=local"]','2026-11-21T12:29:10.221272+00:00');
CREATE INDEX records_in_order ON records (task_key, context_key, id);
COMMIT;
