-- A store as schema version 6 wrote it. Never changed: it proves that old stores can be read.
BEGIN TRANSACTION;
CREATE TABLE clocks (
	"key" VARCHAR(255) NOT NULL, 
	seconds FLOAT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "clocks" VALUES('variants-8899aabbccddeeff',61.25);
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	value TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "decisions" VALUES(1,'fresh-0','"5f0c1a9b5d8e4f6b9f2f6f1c0a7d3e21"','2026-11-22T21:07:27.359064+00:00');
INSERT INTO "decisions" VALUES(2,'compiled-89abcdef01234567','["O3"]','2026-11-22T21:07:27.362991+00:00');
INSERT INTO "decisions" VALUES(3,'variants-0011223344556677-begun','12.5','2026-11-22T21:07:27.367118+00:00');
INSERT INTO "decisions" VALUES(4,'variants-0011223344556677-tuned','["default", "O3"]','2026-11-22T21:07:27.371065+00:00');
INSERT INTO "decisions" VALUES(5,'variants-0011223344556677-search-0','8','2026-11-22T21:07:27.375248+00:00');
INSERT INTO "decisions" VALUES(6,'variants-0011223344556677-rung-1','["O3"]','2026-11-22T21:07:27.379007+00:00');
CREATE TABLE mlir_sched_schema (
	version INTEGER NOT NULL
);
INSERT INTO "mlir_sched_schema" VALUES(6);
CREATE TABLE models (
	"key" VARCHAR(255) NOT NULL, 
	data BLOB NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "models" VALUES('run-0123456789abcdef',X'0001','2026-11-22T21:07:27.386400+00:00');
CREATE TABLE programs (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	context_key VARCHAR(255) NOT NULL, 
	tasks TEXT NOT NULL, 
	decisions TEXT NOT NULL, 
	ratio FLOAT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "programs" VALUES(1,'c165d6f210559ed3a2d474f19972cd6f','threads=1','["task"]','{"variant": "channels_last", "algorithm 7x7x8x8": "winograd"}',2.5,'2026-11-26T19:22:52.682888+00:00');
CREATE TABLE records (
	id INTEGER NOT NULL, 
	task_key VARCHAR(255) NOT NULL, 
	context_key VARCHAR(255) NOT NULL, 
	candidate_key VARCHAR(255) NOT NULL, 
	attempt INTEGER NOT NULL, 
	origin TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	median_s FLOAT, 
	ratio FLOAT, 
	failure TEXT, 
	failure_message TEXT, 
	timing TEXT, 
	binary_hash TEXT NOT NULL, 
	round INTEGER NOT NULL, 
	seed BIGINT NOT NULL, 
	tool TEXT NOT NULL, 
	created TEXT NOT NULL, 
	trace TEXT, 
	script TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (task_key, context_key, candidate_key, attempt), 
	FOREIGN KEY(task_key) REFERENCES tasks ("key")
);
INSERT INTO "records" VALUES(1,'task','caches=32K/1024K/32768K, cpu=A/25/17, generation=0, runtime=3.13.0, threads=1, tool=0.1.0','untuned',0,'untuned','right',0.0005,1.0,NULL,NULL,'{"median_s": 0.0005, "low_s": 0.00049, "high_s": 0.00051, "samples": 24, "ratio": 1.0, "ratio_low": 1.0, "ratio_high": 1.0, "disturbed": 0}','0000000000000000000000000000000000000000000000000000000000000000',0,7,'0.1.0','2026-11-22T17:00:00.000000+00:00',NULL,'');
INSERT INTO "records" VALUES(2,'task','caches=32K/1024K/32768K, cpu=A/25/17, generation=0, runtime=3.13.0, threads=1, tool=0.1.0','a7c3ea80d1f603bfd137f121bae45812',0,'script','not_checked',NULL,NULL,'run_timeout','no result after 3 s',NULL,'',0,7,'0.1.0','2026-11-22T17:00:00.000000+00:00','{"sketch": "contraction", "decisions": [{"name": "tile", "value": [32, 8], "distribution": {"kind": "perfect_tile", "extent": 64, "levels": 2}}, {"name": "order", "value": ["j", "i"], "distribution": {"kind": "permutation", "items": ["i", "j"]}}]}','module {
}
');
INSERT INTO "records" VALUES(3,'task','caches=32K/1024K/32768K, cpu=A/25/17, generation=0, runtime=3.13.0, threads=1, tool=0.1.0','a7c3ea80d1f603bfd137f121bae45812',1,'script','right',0.00025,2.0,NULL,NULL,'{"median_s": 0.00025, "low_s": 0.00024, "high_s": 0.00026, "samples": 24, "ratio": 2.0, "ratio_low": 1.9, "ratio_high": 2.1, "disturbed": 0}','1111111111111111111111111111111111111111111111111111111111111111',1,7,'0.1.0','2026-11-22T17:00:00.000000+00:00','{"sketch": "contraction", "decisions": [{"name": "tile", "value": [32, 8], "distribution": {"kind": "perfect_tile", "extent": 64, "levels": 2}}, {"name": "order", "value": ["j", "i"], "distribution": {"kind": "permutation", "items": ["i", "j"]}}]}','module {
}
');
INSERT INTO "records" VALUES(4,'task','threads=1','untuned',0,'untuned','right',0.001,1.0,NULL,NULL,'{"median_s": 0.001, "low_s": 0.0009, "high_s": 0.0011, "samples": 24, "ratio": 1.0, "ratio_low": 0.9, "ratio_high": 1.1, "disturbed": 0}','aa',0,7,'0.1.0','2026-11-29T09:00:00.000000+00:00',NULL,'');
INSERT INTO "records" VALUES(5,'task','threads=1','right',0,'script','right',0.0008,1.25,NULL,NULL,'{"median_s": 0.0008, "low_s": 0.0007199999999999999, "high_s": 0.00088, "samples": 24, "ratio": 1.25, "ratio_low": 1.125, "ratio_high": 1.375, "disturbed": 0}','bb',0,7,'0.1.0','2026-11-29T09:00:00.000000+00:00',NULL,'// right');
INSERT INTO "records" VALUES(6,'task','threads=1','slow',0,'script','not_checked',6.66666666666666644404e-04,1.5,NULL,NULL,'{"median_s": 0.0006666666666666666, "low_s": 0.0006, "high_s": 0.0007333333333333333, "samples": 1, "ratio": 1.5, "ratio_low": 1.35, "ratio_high": 1.6500000000000001, "disturbed": 0}','cc',0,7,'0.1.0','2026-11-29T09:00:00.000000+00:00',NULL,'// slow');
INSERT INTO "records" VALUES(7,'task','threads=1','wrong',0,'script','wrong',NULL,NULL,'wrong_result','3 of 9 elements',NULL,'dd',0,7,'0.1.0','2026-11-29T09:00:00.000000+00:00',NULL,'// wrong');
CREATE TABLE rounds (
	run_key VARCHAR(255) NOT NULL, 
	round INTEGER NOT NULL, 
	data TEXT NOT NULL, 
	PRIMARY KEY (run_key, round), 
	FOREIGN KEY(run_key) REFERENCES runs ("key")
);
INSERT INTO "rounds" VALUES('run-0123456789abcdef',0,'{"trials": 1}');
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	"key" VARCHAR(255) NOT NULL, 
	settings TEXT NOT NULL, 
	created TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE ("key")
);
INSERT INTO "runs" VALUES(1,'run-0123456789abcdef','{"last_record": 2}','2026-11-22T21:07:27.350526+00:00');
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
INSERT INTO "tasks" VALUES(1,'task','main_dispatch_0','linalg.matmul 64x64x64','target','cpu','3.13.0','["-O3"]','2026-11-22T21:07:27.332043+00:00');
CREATE INDEX records_in_order ON records (task_key, context_key, id);
COMMIT;
