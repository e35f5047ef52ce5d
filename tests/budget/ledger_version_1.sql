-- A ledger as the first version wrote it, as SQLite dumps it.
BEGIN TRANSACTION;
CREATE TABLE charge (id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset (id),
        time TEXT NOT NULL, method TEXT NOT NULL, plan TEXT NOT NULL, seeded INTEGER NOT NULL, epsilon TEXT, delta TEXT, rho TEXT,
    CHECK ((epsilon IS NULL) <> (rho IS NULL) AND (delta IS NULL OR rho IS NULL))) STRICT;
INSERT INTO "charge" VALUES(1,1,'2026-03-01T12:00:01.000+00:00','DPM','{"rows": 0.05, "centres": 0.95}',0,'1/2',NULL,NULL);
INSERT INTO "charge" VALUES(2,1,'2026-03-01T12:00:03.000+00:00','GridKMeans','"by hand"',0,'1/3',NULL,NULL);
INSERT INTO "charge" VALUES(3,2,'2026-03-01T12:00:05.000+00:00','DPM','"plan"',0,NULL,NULL,'1/8');
INSERT INTO "charge" VALUES(4,3,'2026-03-01T12:00:09.000+00:00','DPM','"plan"',1,'1/2','1/10000000',NULL);
CREATE TABLE closure (dataset INTEGER PRIMARY KEY REFERENCES dataset (id), time TEXT NOT NULL) STRICT;
INSERT INTO "closure" VALUES(2,'2026-03-01T12:00:07.000+00:00');
CREATE TABLE dataset (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, time TEXT NOT NULL, epsilon TEXT, delta TEXT, rho TEXT,
    CHECK ((epsilon IS NULL) <> (rho IS NULL) AND (delta IS NULL OR rho IS NULL))) STRICT;
INSERT INTO "dataset" VALUES(1,'patients','2026-03-01T12:00:00.000+00:00','3',NULL,NULL);
INSERT INTO "dataset" VALUES(2,'visits','2026-03-01T12:00:04.000+00:00',NULL,NULL,'1/2');
INSERT INTO "dataset" VALUES(3,'stays','2026-03-01T12:00:08.000+00:00','1','1/1000000',NULL);
CREATE TABLE settlement (charge INTEGER PRIMARY KEY REFERENCES charge (id), time TEXT NOT NULL,
        outcome TEXT NOT NULL CHECK (outcome IN ('released', 'failed'))) STRICT;
INSERT INTO "settlement" VALUES(1,'2026-03-01T12:00:02.000+00:00','released');
INSERT INTO "settlement" VALUES(3,'2026-03-01T12:00:06.000+00:00','failed');
CREATE TRIGGER dataset_update BEFORE UPDATE ON dataset BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER dataset_delete BEFORE DELETE ON dataset BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER dataset_replace BEFORE INSERT ON dataset WHEN EXISTS (SELECT 1 FROM dataset WHERE rowid = NEW.rowid OR name = NEW.name) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_update BEFORE UPDATE ON charge BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_delete BEFORE DELETE ON charge BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_replace BEFORE INSERT ON charge WHEN EXISTS (SELECT 1 FROM charge WHERE rowid = NEW.rowid) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlement_update BEFORE UPDATE ON settlement BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlement_delete BEFORE DELETE ON settlement BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER settlement_replace BEFORE INSERT ON settlement WHEN EXISTS (SELECT 1 FROM settlement WHERE rowid = NEW.rowid) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closure_update BEFORE UPDATE ON closure BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closure_delete BEFORE DELETE ON closure BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER closure_replace BEFORE INSERT ON closure WHEN EXISTS (SELECT 1 FROM closure WHERE rowid = NEW.rowid) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER charge_closed BEFORE INSERT ON charge WHEN EXISTS (SELECT 1 FROM closure WHERE dataset = NEW.dataset) BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE INDEX charge_dataset ON charge (dataset);
COMMIT;
PRAGMA application_id = 1399223661;
PRAGMA user_version = 1;
